package ledger

import (
	"context"
	"errors"
)

// VerifyOpen compares the tokens, and the requests that have not ended, with their events: the rows that a gateway acts on. Its cost
// does not depend on the number of ended runs. Only [Verify] checks the whole chain of events. The error is a [*Fault] for the first
// row that differs.
func VerifyOpen(ctx context.Context, r Reader) error {
	v := &verifier{ctx: ctx, r: r, blobs: newBlobs(r)}
	last, err := r.LastPrune()
	switch {
	case err == nil:
		err = v.runless(&last)
	case errors.Is(err, ErrNotFound):
		err = nil
	default:
		err = unread("events", "the last prune", err)
	}
	if err != nil {
		return err
	}
	at := "the first of a token"
	for e, err := range r.TokenEvents() {
		if err != nil {
			return unread("events", at, err)
		}
		if err := v.runless(&e); err != nil {
			return err
		}
		at = eventKey(e.Seq)
	}
	if err := v.tokens(); err != nil {
		return err
	}
	at = "the first"
	for q, err := range r.Requests(Filter{Open: true}) {
		if err != nil {
			return unread("requests", at, err)
		}
		if _, err := v.run(&q); err != nil {
			return err
		}
		at = q.RunID
	}
	return nil
}

// runless verifies an event that belongs to no run, without the events before it.
func (v *verifier) runless(e *Event) error {
	if e.digest() != e.Hash || e.RunID != "" {
		return &Fault{"events", eventKey(e.Seq), "its hash is not that of its content"}
	}
	return v.apart(e)
}
