package sqlite

import (
	"context"
	"errors"
	"iter"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// A quick is a transaction, or a glance, taken while this process holds the ledger. It does itself the few operations that agents' calls need. For every
// other operation it moves the tail's commits and its own additions into the file, and continues there. Additions that the file's tables would refuse also
// go to the file, so that SQLite returns the error.
type quick struct {
	ctx     context.Context
	t       *tailing
	updates bool // it is a transaction; otherwise it is a glance
	over    bool
	adds    tail.Commit

	file    *tx    // the transaction of the file that continues this one, or its error; nil if it has not continued
	done    func() // ends file
	release func() // ends the share of a glance
}

func (q *quick) usable() error {
	if q.over {
		return errOver
	}
	return q.ctx.Err()
}

// elsewhere returns the file's transaction that continues this one.
func (q *quick) elsewhere() *tx {
	err := q.usable()
	switch {
	case q.file != nil && q.updates:
		return q.file
	case q.file != nil: // each read of a glance sees what was committed when it began
		if err == nil {
			err = q.readOn()
		}
		if err != nil {
			return q.unusable(err)
		}
		return q.file
	case err != nil:
	case q.updates:
		q.file, q.done, err = q.write()
	default:
		q.file, q.done, err = q.read()
	}
	if q.file == nil {
		q.file = q.unusable(err)
	}
	if q.file.failed == nil {
		q.file.failed = err
	}
	return q.file
}

// unusable is a transaction whose operations all fail. Its connection is never used.
func (q *quick) unusable(why error) *tx {
	return &tx{c: new(conn), ctx: q.ctx, path: q.t.s.path, failed: why}
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

// ask reads the file without continuing there: the file has everything but the last state of runs with commits in the tail.
func ask[T any](q *quick, what func(*tx) (T, error)) (v T, err error) {
	look := q.t.beside
	if !q.updates {
		if _, held := q.t.reached(); !held { // any more: others may have commits in the tail
			return what(q.elsewhere())
		}
		look = q.t.s.look
	}
	err = look(q.ctx, func(x *tx) error {
		defer x.end()
		v, err = what(x)
		return err
	})
	return v, err
}

func (q *quick) End() (ledger.End, error) {
	if q.file != nil {
		return q.elsewhere().End()
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

// known returns a run's cached state, if it is cached.
func (q *quick) known(run string) (r ledger.Request, ok bool) {
	if r := q.put(run); r != nil {
		return *r, true
	}
	known, ok := q.t.run(run)
	return known.request, ok
}

func (q *quick) Request(run string) (r ledger.Request, err error) {
	if q.file != nil {
		return q.elsewhere().Request(run)
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
		return q.elsewhere().Reached(run)
	}
	if err := q.usable(); err != nil {
		return 0, err
	}
	if r, ok := q.known(run); ok {
		return r.Seq, nil
	}
	return ask(q, func(x *tx) (int64, error) { return x.Reached(run) })
}

// Waiting reads the file: the tail has no run that a call can attach to.
func (q *quick) Waiting(l ledger.Look) (string, error) {
	if q.file != nil {
		return q.elsewhere().Waiting(l)
	}
	if err := q.usable(); err != nil {
		return "", err
	}
	if q.t.noneWaits() {
		return "", ledger.ErrNotFound
	}
	return ask(q, func(x *tx) (string, error) { return x.Waiting(l) })
}

// Token reads the file once: the tail has no tokens.
func (q *quick) Token(id string) (k ledger.Token, err error) {
	if q.file != nil {
		return q.elsewhere().Token(id)
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
	last := q.t.lastDecision()
	if n := len(q.adds.Decisions); n > 0 {
		last = q.adds.Decisions[n-1].Seq
	}
	if d.Seq <= last {
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
		last, ok := lastOf(steps[:i], steps[i].RunID)
		if !ok {
			var err error
			if last, err = q.lastStep(steps[i].RunID); err != nil {
				return err
			}
		}
		if steps[i].Seq <= last {
			return q.elsewhere().AddSteps(steps)
		}
	}
	q.adds.Steps = append(q.adds.Steps, steps...)
	return nil
}

// lastOf returns the seq of a run's last step, if it has one there.
func lastOf(steps []ledger.Step, run string) (seq int, ok bool) {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].RunID == run {
			return steps[i].Seq, true
		}
	}
	return noStep, false
}

// lastStep returns the seq of a run's last step, or noStep.
func (q *quick) lastStep(run string) (int, error) {
	if last, ok := lastOf(q.adds.Steps, run); ok {
		return last, nil
	}
	known, ok := q.t.run(run)
	switch {
	case ok && known.step != stepInFile:
		return known.step, nil
	case !ok && q.t.isNew(run):
		return noStep, nil
	}
	return ask(q, func(x *tx) (last int, err error) {
		for last, err = range all(x, (*row).int, "SELECT coalesce(max(seq), -1) FROM steps WHERE run_id = ?", run) {
			return last, err
		}
		return noStep, nil
	})
}

// whole reports whether the transaction also puts the request of each run to which it adds steps: a run is cached with its request.
func (q *quick) whole() bool {
	run := ""
	for i := range q.adds.Steps {
		if i > 0 && q.adds.Steps[i].RunID == run {
			continue
		}
		if run = q.adds.Steps[i].RunID; q.put(run) == nil {
			return false
		}
	}
	return true
}

// put returns the transaction's put of a run, or nil.
func (q *quick) put(run string) *ledger.Request {
	for i := len(q.adds.Requests) - 1; i >= 0; i-- {
		if r := &q.adds.Requests[i].Request; r.RunID == run {
			return r
		}
	}
	return nil
}

// usual reports whether a request is not held, and its columns satisfy the file's checks.
func usual(r *ledger.Request) bool {
	return r.Binding == "" && len(r.Approvers) == 0 && r.Steps >= 0
}

func (q *quick) AddRequest(r ledger.Request) error {
	if q.file != nil {
		return q.file.AddRequest(r)
	}
	if err := q.usable(); err != nil {
		return err
	}
	if !usual(&r) {
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
	if !usual(&r) {
		return q.elsewhere().PutRequest(r)
	}
	if !q.t.noneWaits() { // a call could attach to this run before, and no longer can
		if _, there := q.known(r.RunID); !there {
			return q.elsewhere().PutRequest(r)
		}
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

// Operations that calls do not need.

func (q *quick) Last() (ledger.Event, error)                   { return q.elsewhere().Last() }
func (q *quick) TokenEvents() iter.Seq2[ledger.Event, error]   { return q.elsewhere().TokenEvents() }
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
