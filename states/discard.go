package states

import "context"

// DiscardRecorder is a [Recorder] that records nothing, for serve.record: none. Steps are not
// encoded for it: it gets only the transition.
type DiscardRecorder struct{}

// Append forgets the step.
func (DiscardRecorder) Append(context.Context, Step) error { return nil }

// keepsNothing marks a recorder that needs no encoded steps, even if it is embedded.
func (DiscardRecorder) keepsNothing() {}
