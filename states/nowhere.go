package states

import "context"

// Nowhere is a [Recorder] that keeps nothing, for those who say that nothing is to be kept. Steps are not encoded for it:
// it gets only the transition.
type Nowhere struct{}

// Append forgets the step.
func (Nowhere) Append(context.Context, Step) error { return nil }

// keepsNothing tells [Machine.Advance] that it is one, also where it is embedded.
func (Nowhere) keepsNothing() {}
