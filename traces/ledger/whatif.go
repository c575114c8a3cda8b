package ledger

import (
	"cmp"
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// ErrBundle means that the ledger has no bundle with this digest, or that this build cannot read
// the bundle.
var ErrBundle = errors.New("the ledger has no such bundle that this version of pgfsm can read")

// A WhatIf holds the judgments of two bundles about one recorded run, up to the decision about its
// call.
type WhatIf struct {
	Bundle     canonical.Digest // digest of the other bundle
	Own, By    *states.Run      // the run judged by its own bundle, and by the other one
	Steps      []traces.Step    // the steps of By
	Unanswered error            // why the other bundle cannot judge the run: a [*traces.UnansweredError]
}

// TryBundle judges a recorded run by a bundle of the log; an empty digest means the active bundle.
// It calls and records nothing. The error is [ErrNotFound] if there is no such run, and [ErrBundle]
// if there is no such bundle.
func TryBundle(r Reader, p *traces.Replayer, run string, bundle canonical.Digest) (w WhatIf, err error) {
	rec, err := Load(r, run)
	if err != nil {
		return w, err
	}
	ownBundle, err := p.Bundle(&rec.Header.Bundle)
	if err != nil {
		return w, fmt.Errorf("run %s: %w", run, err)
	}

	if bundle == "" {
		active, err := LastActivation(r)
		if err != nil || active == nil {
			return w, cmp.Or(err, ErrBundle)
		}
		bundle = active.Bundle
	}

	other, err := readBundle(r, p, bundle)
	if err != nil {
		return w, err
	}

	w.Bundle = bundle
	if w.Own, _, err = p.Judge(&rec.Header, rec.Inputs, ownBundle); err != nil && !isUnanswered(err) {
		return w, fmt.Errorf("run %s: %w", run, err)
	}

	w.By, w.Steps, err = p.Judge(&rec.Header, rec.Inputs, other)
	if isUnanswered(err) {
		w.Unanswered, err = err, nil
	}

	return w, err
}

func isUnanswered(err error) bool {
	var lacks *traces.UnansweredError
	return errors.As(err, &lacks)
}

// readBundle compiles a bundle of the log.
func readBundle(r Reader, p *traces.Replayer, digest canonical.Digest) (*policy.Bundle, error) {
	stored, err := r.Blob(digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, ErrBundle
	case err != nil:
		return nil, err
	case stored.Kind != BlobBundle:
		return nil, ErrBundle
	}

	b, err := p.Bundle(&traces.Bundle{Content: []byte(stored.Text), Digest: digest})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	return b, nil
}
