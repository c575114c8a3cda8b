package sqlite

import (
	"context"
	"errors"
	"iter"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// A quick is a transaction, or a glance, of who holds the ledger. It knows of the few things that the calls of agents do. Whatever else is
// asked of it is done in the file, after what stands in the tail, and what the transaction has added, was brought in there, and then
// it goes on there. It is held to the same order as the file's tables are: what they would refuse they are given, so that they say why.
type quick struct {
	ctx  context.Context
	t    *tailing
	over bool
	adds tail.Commit

	inFile func() (x *tx, done func(), err error) // begins to go on in the file
	file   *tx                                    // where it goes on, or why it cannot; nil: it has not begun to
	done   func()                                 // ends that
}

func (q *quick) usable() error {
	if q.over {
		return errOver
	}
	return q.ctx.Err()
}

// elsewhere returns the transaction of the file in which this one goes on.
func (q *quick) elsewhere() *tx {
	if q.file != nil {
		return q.file
	}
	err := q.usable()
	if err == nil {
		q.file, q.done, err = q.inFile()
	}
	if q.file == nil {
		q.file = &tx{ctx: q.ctx, path: q.t.s.path}
	}
	if q.file.failed == nil {
		q.file.failed = err
	}
	return q.file
}

func (q *quick) close() {
	q.over = true
	if q.file != nil {
		q.file.over = true
	}
	if q.done != nil {
		q.done()
	}
}

// ask asks the file, in which all stands that a run's last commit in the tail does not say, without going on there.
func ask[T any](q *quick, what func(*tx) (T, error)) (v T, err error) {
	err = q.t.s.look(q.ctx, func(x *tx) error {
		defer x.end()
		v, err = what(x)
		return err
	})
	return v, err
}

func (q *quick) End() (ledger.End, error) {
	if q.file != nil {
		return q.file.End()
	}
	if err := q.usable(); err != nil {
		return ledger.End{}, err
	}
	if n := len(q.adds.Events); n > 0 {
		e := &q.adds.Events[n-1]
		return ledger.End{Seq: e.Seq, At: e.At, Hash: e.Hash}, nil
	}
	end, held := q.t.reached()
	switch {
	case !held:
		return q.elsewhere().End()
	case end.Seq == 0:
		return end, ledger.ErrNotFound
	}
	return end, nil
}

// known returns how a run stands, as far as it is known.
func (q *quick) known(run string) (r ledger.Request, ok bool) {
	for i := len(q.adds.Requests) - 1; i >= 0; i-- {
		if q.adds.Requests[i].RunID == run {
			return q.adds.Requests[i].Request, true
		}
	}
	known, ok := q.t.run(run)
	return known.request, ok
}

func (q *quick) Request(run string) (r ledger.Request, err error) {
	if q.file != nil {
		return q.file.Request(run)
	}
	if err := q.usable(); err != nil {
		return r, err
	}
	if r, ok := q.known(run); ok {
		return r, nil
	}
	return ask(q, func(x *tx) (ledger.Request, error) { return x.Request(run) })
}

func (q *quick) Reached(run string) (int64, error) {
	if q.file != nil {
		return q.file.Reached(run)
	}
	if err := q.usable(); err != nil {
		return 0, err
	}
	if r, ok := q.known(run); ok {
		return r.Seq, nil
	}
	return ask(q, func(x *tx) (int64, error) { return x.Reached(run) })
}

// Waiting asks the file: nothing that a call attaches to stands in the tail.
func (q *quick) Waiting(l ledger.Look) (string, error) {
	if q.file != nil {
		return q.file.Waiting(l)
	}
	if err := q.usable(); err != nil {
		return "", err
	}
	if q.t.noneWaits() {
		return "", ledger.ErrNotFound
	}
	return ask(q, func(x *tx) (string, error) { return x.Waiting(l) })
}

// Token asks the file once: no token stands in the tail.
func (q *quick) Token(id string) (k ledger.Token, err error) {
	if q.file != nil {
		return q.file.Token(id)
	}
	if err := q.usable(); err != nil {
		return k, err
	}
	return q.t.token(id, func() (ledger.Token, error) {
		return ask(q, func(x *tx) (ledger.Token, error) { return x.Token(id) })
	})
}

func (q *quick) AddEvents(events []ledger.Event) error {
	if q.file != nil {
		return q.file.AddEvents(events)
	}
	end, err := q.End()
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	for i := range events {
		if events[i].Seq != end.Seq+int64(i)+1 {
			return q.elsewhere().AddEvents(events)
		}
	}
	q.adds.Events = append(q.adds.Events, events...)
	return nil
}

func (q *quick) AddDecision(d ledger.Decision) error {
	if q.file != nil {
		return q.file.AddDecision(d)
	}
	if err := q.usable(); err != nil {
		return err
	}
	end, _ := q.t.reached()
	if n := len(q.adds.Decisions); d.Seq <= end.Seq || n > 0 && d.Seq <= q.adds.Decisions[n-1].Seq {
		return q.elsewhere().AddDecision(d)
	}
	q.adds.Decisions = append(q.adds.Decisions, d)
	return nil
}

func (q *quick) AddSteps(steps []ledger.Step) error {
	if q.file != nil {
		return q.file.AddSteps(steps)
	}
	if err := q.usable(); err != nil {
		return err
	}
	for i := range steps {
		if i > 0 && steps[i].RunID == steps[i-1].RunID {
			if steps[i].Seq != steps[i-1].Seq+1 {
				return q.elsewhere().AddSteps(steps)
			}
			continue
		}
		last, err := q.lastStep(steps[i].RunID)
		if err != nil {
			return err
		}
		if steps[i].Seq <= last {
			return q.elsewhere().AddSteps(steps)
		}
	}
	q.adds.Steps = append(q.adds.Steps, steps...)
	return nil
}

// lastStep returns the seq of a run's last step, or -1.
func (q *quick) lastStep(run string) (int, error) {
	for i := len(q.adds.Steps) - 1; i >= 0; i-- {
		if q.adds.Steps[i].RunID == run {
			return q.adds.Steps[i].Seq, nil
		}
	}
	if known, ok := q.t.run(run); ok {
		return known.step, nil
	}
	if q.t.isNew(run) {
		return -1, nil
	}
	return ask(q, func(x *tx) (last int, err error) {
		for last, err = range all(x, (*row).int, "SELECT coalesce(max(seq), -1) FROM steps WHERE run_id = ?", run) {
			return last, err
		}
		return -1, nil
	})
}

func (q *quick) AddRequest(r ledger.Request) error {
	if q.file != nil {
		return q.file.AddRequest(r)
	}
	if err := q.usable(); err != nil {
		return err
	}
	if r.Binding != "" { // a call may attach to it
		return q.elsewhere().AddRequest(r)
	}
	if _, there := q.known(r.RunID); there {
		return q.elsewhere().AddRequest(r)
	}
	if !q.t.isNew(r.RunID) {
		_, err := ask(q, func(x *tx) (int64, error) { return x.Reached(r.RunID) })
		if !errors.Is(err, ledger.ErrNotFound) {
			return q.elsewhere().AddRequest(r)
		}
	}
	q.adds.Requests = append(q.adds.Requests, tail.Put{Request: r, New: true})
	return nil
}

func (q *quick) PutRequest(r ledger.Request) error {
	if q.file != nil {
		return q.file.PutRequest(r)
	}
	if err := q.usable(); err != nil {
		return err
	}
	if r.Binding != "" {
		return q.elsewhere().PutRequest(r)
	}
	q.adds.Requests = append(q.adds.Requests, tail.Put{Request: r})
	return nil
}

func (q *quick) PutBlob(b ledger.Blob) error {
	if q.file != nil {
		return q.file.PutBlob(b)
	}
	if err := q.usable(); err != nil {
		return err
	}
	if q.t.hasBlob(b.Digest) {
		return nil
	}
	for i := range q.adds.Blobs {
		if q.adds.Blobs[i].Digest == b.Digest {
			return nil
		}
	}
	there, err := ask(q, func(x *tx) (bool, error) {
		for _, err := range all(x, (*row).int64, "SELECT 1 FROM blobs WHERE digest = ?", string(b.Digest)) {
			return true, err
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case there:
		q.t.mu.Lock()
		q.t.addBlob(b.Digest)
		q.t.mu.Unlock()
	default:
		q.adds.Blobs = append(q.adds.Blobs, b)
	}
	return nil
}

// What calls do not ask.

func (q *quick) Last() (ledger.Event, error)                   { return q.elsewhere().Last() }
func (q *quick) LastPrune() (ledger.Event, error)              { return q.elsewhere().LastPrune() }
func (q *quick) Events(n int64) iter.Seq2[ledger.Event, error] { return q.elsewhere().Events(n) }
func (q *quick) EventsOf(run string) iter.Seq2[ledger.Event, error] {
	return q.elsewhere().EventsOf(run)
}
func (q *quick) Requests(f ledger.Filter) iter.Seq2[ledger.Request, error] {
	return q.elsewhere().Requests(f)
}
func (q *quick) Decisions(n int64) iter.Seq2[ledger.Decision, error] {
	return q.elsewhere().Decisions(n)
}
func (q *quick) Steps(run string) iter.Seq2[ledger.Step, error] { return q.elsewhere().Steps(run) }
func (q *quick) Runs() iter.Seq2[string, error]                 { return q.elsewhere().Runs() }
func (q *quick) Blob(d canonical.Digest) (ledger.Blob, error)   { return q.elsewhere().Blob(d) }
func (q *quick) Blobs() iter.Seq2[ledger.Blob, error]           { return q.elsewhere().Blobs() }
func (q *quick) Tokens() iter.Seq2[ledger.Token, error]         { return q.elsewhere().Tokens() }
func (q *quick) Delivered(hook string) (int64, error)           { return q.elsewhere().Delivered(hook) }
func (q *quick) PutToken(k ledger.Token) error                  { return q.elsewhere().PutToken(k) }
func (q *quick) PutDelivery(d ledger.Delivery) error            { return q.elsewhere().PutDelivery(d) }
func (q *quick) SetDelivered(hook string, seq int64) error {
	return q.elsewhere().SetDelivered(hook, seq)
}
func (q *quick) Prune(upTo int64, runs []string) error { return q.elsewhere().Prune(upTo, runs) }
func (q *quick) Deliveries(due string, limit int) iter.Seq2[ledger.Delivery, error] {
	return q.elsewhere().Deliveries(due, limit)
}
