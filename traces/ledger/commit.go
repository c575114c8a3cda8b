package ledger

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBatch is how many operations share a transaction at most.
const maxBatch = 256

// yields is how often the committer yields before it commits, if the last commit had several operations: under load more
// operations arrive meanwhile and share the flush.
const yields = 2

// An operation is committed as a whole or not at all. It may run more than once, so it keeps no state. It returns its refusals
// before it writes anything: then the other operations of its batch go on.
type operation struct {
	do    func(*batch) error
	taken atomic.Bool // it is being recorded, or was given up
	err   chan error
}

// commit runs an operation. When it returns nil, the operation is durable. If ctx is done, an operation that has not begun is
// dropped.
func (l *Ledger) commit(ctx context.Context, do func(*batch) error) error {
	o := &operation{do: do, err: make(chan error, 1)}
	select {
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case l.queue <- o:
	}
	select {
	case err := <-o.err:
		return err
	case <-ctx.Done():
		if o.taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-o.err
	case <-l.done:
		select {
		case err := <-o.err:
			return err
		default:
			return ErrClosed
		}
	}
}

// commits commits all waiting operations in one transaction, again and again, until the ledger is closed.
func (l *Ledger) commits() {
	defer close(l.done)
	together := 1 // how many were recorded together before
	for {
		var waiting []*operation
		select {
		case o := <-l.queue:
			waiting = append(waiting, o)
		case <-l.closing:
			select {
			case o := <-l.queue:
				waiting = append(waiting, o)
			default:
				return
			}
		}
		waiting = l.joined(waiting, together, runtime.Gosched)
		together = len(waiting)
		l.record(waiting)
	}
}

// joined returns the waiting operations and those that arrive while others run.
func (l *Ledger) joined(waiting []*operation, together int, others func()) []*operation {
	for n := 0; n < yields && together > 1; n++ {
		others()
	}
	for len(waiting) < maxBatch {
		select {
		case o := <-l.queue:
			waiting = append(waiting, o)
		default:
			return waiting
		}
	}
	return waiting
}

// record commits operations together and, if that fails, each alone. If none was begun, the store failed to begin, and trying
// each would wait again in vain.
func (l *Ledger) record(waiting []*operation) {
	begun := waiting[:0]
	for _, o := range waiting {
		if o.taken.CompareAndSwap(false, true) {
			begun = append(begun, o)
		}
	}
	if len(begun) == 0 {
		return
	}
	errs, err := l.together(begun)
	if err != nil && errs != nil && len(begun) > 1 {
		for i, o := range begun {
			var one []error
			if one, err = l.together(begun[i : i+1]); err == nil {
				err = one[0]
			}
			o.err <- err
		}
		return
	}
	for i, o := range begun {
		if err != nil {
			o.err <- err
		} else {
			o.err <- errs[i]
		}
	}
}

// errHalf means that an operation failed after it had written something.
var errHalf = errors.New("an operation broke half way")

// together runs operations in one transaction. The errors are the refusals of each operation, and nil if none was begun; the
// error is what failed the transaction.
func (l *Ledger) together(all []*operation) (errs []error, err error) {
	err = l.store.Update(context.Background(), func(tx Tx) error {
		end, err := lastLink(tx)
		if err != nil {
			return err
		}
		now, err := l.now(end.at)
		if err != nil {
			return err
		}
		errs = make([]error, len(all))
		b := &batch{Tx: tx, link: end, now: now}
		for i, o := range all {
			b.wrote = false
			if errs[i] = o.do(b); errs[i] == nil {
				errs[i] = b.flush()
			}
			if errs[i] != nil && b.wrote {
				return errors.Join(errHalf, errs[i])
			}
		}
		return nil
	})
	return errs, err
}

// A batch is a transaction with the end of the chain.
type batch struct {
	Tx
	link  link
	now   string
	wrote bool    // the operation has written something
	added []Event // by the operation, and not in the store yet
}

// flush adds the events of an operation to the store, all at once. An operation that reads its own events must flush first.
func (b *batch) flush() error {
	if len(b.added) == 0 {
		return nil
	}
	err := b.AddEvents(b.added)
	b.added = b.added[:0]
	return err
}

// add adds an event, and applies it to its request, if it has one. It does not put the request: an operation that adds several
// events puts it once.
func (b *batch) add(r *Request, run, by string, p payload) error {
	b.wrote = true
	e := Event{Seq: b.link.seq + 1, RunID: run, Type: p.kind(), At: b.now, By: by, Prev: b.link.hash}
	if r != nil {
		e.RunPrev = r.Hash
	}
	payload, err := encode(p)
	if err != nil {
		return err
	}
	if e.Payload, err = b.aside(payload); err != nil {
		return err
	}
	e.Hash = e.digest()
	for _, d := range references(&e, p) {
		if err := b.UseBlob(d, e.Seq); err != nil {
			return err
		}
	}
	if r != nil {
		if err := project(r, &e, p); err != nil {
			return err
		}
	}
	b.added = append(b.added, e)
	b.link = link{e.Seq, e.At, e.Hash}
	if d, ok := p.(*decision); ok {
		return b.AddDecision(d.row(&e))
	}
	return nil
}

// aside returns a payload for its row: a large one becomes a blob.
func (b *batch) aside(text []byte) (jsontext.Value, error) {
	if len(text) <= MaxInline {
		return text, nil
	}
	ref, err := inline(text, b.PutBlob)
	return jsontext.Value(ref), err
}

// row is the row of a decision.
func (p *decision) row(e *Event) Decision {
	return Decision{
		Seq: e.Seq, RunID: e.RunID, At: e.At, Outcome: p.Outcome, Policy: p.Policy, Condition: p.Condition,
		Bundle: p.Bundle, Code: p.Code, Reason: p.Reason,
	}
}
