package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// How the requester gets the outcome of a held call.
const (
	ByReply  = "reply"  // in the response to the call itself, which stayed open
	ByRepeat = "repeat" // in the response to a repetition of the call
	ByTask   = "task"   // in the result of a task
)

// DeliveryWays returns the ways in which outcomes are delivered.
func DeliveryWays() []string { return []string{ByReply, ByRepeat, ByTask} }

// ErrOpen means that a run has no outcome yet. A [ClaimError] wraps it.
var ErrOpen = errors.New("the run has not ended, so there is no outcome to deliver")

// Deliver records that the requester is about to get the outcome of a held run, and by which of the
// [DeliveryWays]. Of several callers, in any number of processes, exactly one gets true; the others
// must not deliver the outcome again. When Deliver returns true, that is durable: if the process
// ends before it sends the response, no repetition attaches to the run any more, and the ledger
// still shows the outcome.
//
// The error is [ErrUnknown] if there is no such run, [ErrNotHeld] if the run was not held, and a
// [*ClaimError] with [ErrOpen] if the run has not ended.
func (l *Ledger) Deliver(ctx context.Context, run, how string) (first bool, err error) {
	if !slices.Contains(DeliveryWays(), how) {
		return false, fmt.Errorf("no outcome is delivered by way of %q", visible.Clip(how, MaxTokenName))
	}
	err = l.commit(ctx, func(b *batch) error {
		first = false
		q, err := b.Run(run)
		switch {
		case err != nil:
			return explainNotFound(run, err)
		case q.Binding == "":
			return &Refusal{Code: RefusedNotHeld,
				Message: fmt.Sprintf("the request was never held; it is %s", q.Status)}
		case q.Ended == "":
			return &ClaimError{Row: q, Err: ErrOpen}
		case q.Delivered != "":
			return nil
		}
		first = true
		return b.addEventAndRow(&q, l.owner, &outcomeDelivered{How: how})
	})
	if err != nil {
		return false, err
	}
	return first, nil
}

// A RepeatedCall identifies a call that is repeated. Its fields have the values of the same fields of
// [RunRow]. Kind is empty for an agent's call; only for the other kinds, whose client makes the call
// itself, Session counts, and a run whose permit was handed out is none.
type RepeatedCall struct {
	Kind       string
	Session    string
	Actor      string
	OnBehalfOf string
	Client     string
	Server     string
	Tool       string
	Arguments  canonical.Digest
}

// Attach returns the id of the oldest run that a repetition of a call attaches to, as [Reader.FindWaiting]
// finds it. It reads one index, however many runs there are. The error is [ErrNotFound] if there is
// no such run, which is the usual case. So it is if a member of call other than OnBehalfOf and
// Client is empty.
func (l *Ledger) Attach(ctx context.Context, call RepeatedCall) (run string, err error) {
	// No call can be equal to it.
	if call.Actor == "" || call.Server == "" || call.Tool == "" || call.Arguments == "" {
		return "", ErrNotFound
	}
	err = l.ReadCommitted(ctx, func(r Reader) error {
		run, err = r.FindWaiting(call)
		return err
	})
	return run, err
}
