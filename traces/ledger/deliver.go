package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/states"
)

// The ways in which the outcome of a held call reaches who asked.
const (
	ByReply  = "reply"  // in the answer to the call itself, which was kept open meanwhile
	ByRepeat = "repeat" // in the answer to a repetition of the call
	ByTask   = "task"   // as the result of a task
)

// Ways returns the ways in which outcomes are delivered.
func Ways() []string { return []string{ByReply, ByRepeat, ByTask} }

// ErrOpen means that a run has no outcome yet. It comes in a [ClaimError].
var ErrOpen = errors.New("the run has not ended, so there is no outcome to deliver")

// Deliver records that who asked is about to be told how a held run ended, and by which of the [Ways]. Of many who try, in
// any number of processes and at any time, one is the first; whoever is not must not count on the outcome being theirs to
// hand over once more. When it returns true, that is durable: should the process end before the answer is sent, nobody
// attaches to the run any more, and the ledger still shows its outcome.
//
// The error is [ErrUnknown] where there is no such run, [ErrNotHeld] where nobody was asked about it, and a [*ClaimError]
// with [ErrOpen] where it has not ended.
func (l *Ledger) Deliver(ctx context.Context, run, how string) (first bool, err error) {
	if !slices.Contains(Ways(), how) {
		return false, fmt.Errorf("no outcome is delivered by way of %q", visible.Clip(how, MaxTokenName))
	}
	err = l.commit(ctx, func(b *batch) error {
		first = false
		q, err := b.Request(run)
		switch {
		case err != nil:
			return orUnknown(run, err)
		case q.Binding == "":
			return &Refusal{Code: RefusedNotHeld, Message: fmt.Sprintf("nobody was asked about this request; it is %s", q.Status)}
		case q.Ended == "":
			return &ClaimError{Request: q, Err: ErrOpen}
		case q.Delivered != "":
			return nil
		}
		first = true
		return b.put(&q, l.owner, &delivered{How: how})
	})
	return first && err == nil, err
}

// A Look says which call of an agent is being repeated.
type Look struct {
	Actor     string
	Server    string
	Tool      string
	Arguments canonical.Digest // as [Request.Arguments]
}

// Attach returns the oldest run that a repetition of a call attaches to: one for exactly the same call by the same caller
// that [Request.Attachable] holds for. It takes one look at an index, however many runs there are. The error is
// [ErrNotFound] where there is none, which is the usual case, and where a part of what is looked for is empty.
func (l *Ledger) Attach(ctx context.Context, look Look) (Request, error) {
	if look.Actor == "" || look.Server == "" || look.Tool == "" || look.Arguments == "" { // nobody's call, or none
		return Request{}, ErrNotFound
	}
	err := l.Glance(ctx, func(r Reader) error {
		_, err := r.Waiting(look)
		return err
	})
	if err != nil {
		return Request{}, err
	}
	var q Request // not before: nearly all calls find nothing

	err = l.View(ctx, func(r Reader) error { // the run and how it stands, at one moment
		run, err := r.Waiting(look)
		if err == nil {
			q, err = r.Request(run)
		}
		return err
	})
	return q, err
}

// Attachable reports whether a repetition of the run's call attaches to it: an agent's call that was held, and whose outcome
// was not delivered yet. Calls with something beside their arguments are never held.
func (q *Request) Attachable() bool {
	return q.Kind == states.KindAgent && q.Binding != "" && q.Delivered == ""
}
