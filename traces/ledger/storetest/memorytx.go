package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// A reader reads the state that now returns when a read begins.
type reader struct {
	now    func() *state
	ctx    context.Context
	over   bool
	failed error // the first error of a write
}

func (r *reader) usable() error {
	switch {
	case r.over:
		return errOver
	case r.failed != nil:
		return r.failed
	}
	return r.ctx.Err()
}

// rows returns those that find returns when the sequence begins.
func rows[T any](r *reader, find func(*state) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := r.usable(); err != nil {
			yield(none, err)
			return
		}
		for _, v := range find(r.now()) {
			if err := r.usable(); err != nil {
				yield(none, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// row looks one row up.
func row[K comparable, T any](r *reader, find func(*state) map[K]T, key K) (T, error) {
	if err := r.usable(); err != nil {
		var none T
		return none, err
	}
	v, ok := find(r.now())[key]
	if !ok {
		return v, fmt.Errorf("%v: %w", key, ledger.ErrNotFound)
	}
	return v, nil
}

func requestsOf(s *state) map[string]ledger.Request     { return s.requests }
func blobsOf(s *state) map[canonical.Digest]ledger.Blob { return s.blobs }
func tokensOf(s *state) map[string]ledger.Token         { return s.tokens }

// sorted returns the values of a map in order.
func sorted[K comparable, T any](all map[K]T, order func(a, b T) int) []T {
	return slices.SortedFunc(maps.Values(all), order)
}

func (r *reader) Last() (ledger.Event, error) {
	events := r.now().events
	if err := r.usable(); err != nil || len(events) == 0 {
		return ledger.Event{}, cmp.Or(err, fmt.Errorf("the last event: %w", ledger.ErrNotFound))
	}
	return cloneEvent(events[len(events)-1]), nil
}

func (r *reader) End() (ledger.End, error) {
	e, err := r.Last()
	return ledger.End{Seq: e.Seq, At: e.At, Hash: e.Hash}, err
}

func (r *reader) LastPrune() (ledger.Event, error) {
	if err := r.usable(); err != nil {
		return ledger.Event{}, err
	}
	for _, e := range slices.Backward(r.now().events) {
		if e.Type == ledger.LedgerPruned {
			return cloneEvent(e), nil
		}
	}
	return ledger.Event{}, fmt.Errorf("the last prune: %w", ledger.ErrNotFound)
}

func (r *reader) TokenEvents() iter.Seq2[ledger.Event, error] {
	return rows(r, func(s *state) []ledger.Event {
		return cloned(slices.DeleteFunc(slices.Clone(s.events), func(e ledger.Event) bool {
			return e.Type != ledger.TokenCreated && e.Type != ledger.TokenRevoked
		}))
	})
}

func (r *reader) Events(after int64) iter.Seq2[ledger.Event, error] {
	return rows(r, func(s *state) []ledger.Event {
		first := sort.Search(len(s.events), func(i int) bool { return s.events[i].Seq > after })
		return cloned(s.events[first:])
	})
}

func (r *reader) EventsOf(run string) iter.Seq2[ledger.Event, error] {
	return rows(r, func(s *state) []ledger.Event {
		return slices.DeleteFunc(cloned(s.events), func(e ledger.Event) bool { return e.RunID != run })
	})
}

func cloned(events []ledger.Event) []ledger.Event {
	all := make([]ledger.Event, len(events))
	for i, e := range events {
		all[i] = cloneEvent(e)
	}
	return all
}

func (r *reader) Request(run string) (ledger.Request, error) {
	q, err := row(r, requestsOf, run)
	return cloneRequest(q), err
}

func (r *reader) Reached(run string) (int64, error) {
	q, err := row(r, requestsOf, run)
	return q.Seq, err
}

func (r *reader) Requests(f ledger.Filter) iter.Seq2[ledger.Request, error] {
	return rows(r, func(s *state) []ledger.Request {
		all := sorted(s.requests, func(a, b ledger.Request) int { return strings.Compare(a.RunID, b.RunID) })
		all = slices.DeleteFunc(all, func(q ledger.Request) bool { return !fits(&f, &q) })
		if f.Newest {
			slices.Reverse(all)
		}
		if f.Limit > 0 && len(all) > f.Limit {
			all = all[:f.Limit]
		}
		for i := range all {
			all[i] = cloneRequest(all[i])
		}
		return all
	})
}

func (r *reader) Waiting(l ledger.Look) (string, error) {
	if err := r.usable(); err != nil {
		return "", err
	}
	first := ""
	for run, q := range r.now().requests { // the first in their order, in any order
		same := l == ledger.Look{Actor: q.Actor, Server: q.Server, Tool: q.Tool, Arguments: q.Arguments}
		if same && q.Attachable() && (first == "" || run < first) {
			first = run
		}
	}
	if first == "" {
		return "", ledger.ErrNotFound
	}
	return first, nil
}

// fits reports whether a filter chooses a request.
func fits(f *ledger.Filter, q *ledger.Request) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, q.Status)) &&
		(!f.Open || q.Ended == "") &&
		(!f.Held || q.Binding != "") &&
		(f.Actor == "" || q.Actor == f.Actor) &&
		(f.Task == "" || q.Task == f.Task) &&
		(f.Server == "" || q.Server == f.Server) &&
		(f.Tool == "" || q.Tool == f.Tool) &&
		(f.Since == "" || q.Ended == "" || max(q.At, q.Sent) >= f.Since) &&
		(!f.Counted || q.Sent != "" || q.Ended == "") &&
		(f.After == "" || q.RunID > f.After)
}

func (r *reader) Decisions(after int64) iter.Seq2[ledger.Decision, error] {
	return rows(r, func(s *state) []ledger.Decision {
		first := sort.Search(len(s.decisions), func(i int) bool { return s.decisions[i].Seq > after })
		return slices.Clone(s.decisions[first:])
	})
}

func (r *reader) Blob(d canonical.Digest) (ledger.Blob, error) { return row(r, blobsOf, d) }

func (r *reader) Blobs() iter.Seq2[ledger.Blob, error] {
	return rows(r, func(s *state) []ledger.Blob {
		return sorted(s.blobs, func(a, b ledger.Blob) int { return cmp.Compare(a.Digest, b.Digest) })
	})
}

func (r *reader) Token(id string) (ledger.Token, error) { return row(r, tokensOf, id) }

func (r *reader) Tokens() iter.Seq2[ledger.Token, error] {
	return rows(r, func(s *state) []ledger.Token {
		return sorted(s.tokens, func(a, b ledger.Token) int {
			return cmp.Or(strings.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
		})
	})
}

func (r *reader) Deliveries(due string, limit int) iter.Seq2[ledger.Delivery, error] {
	return rows(r, func(s *state) []ledger.Delivery {
		all := sorted(s.deliveries, func(a, b ledger.Delivery) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.Hook, b.Hook))
		})
		all = slices.DeleteFunc(all, func(d ledger.Delivery) bool { return d.State != "waiting" || d.Next > due })
		return all[:max(min(limit, len(all)), 0)]
	})
}

func (r *reader) Delivered(hook string) (int64, error) {
	return r.now().delivered[hook], r.usable()
}

// A tx writes into a state that nobody else has yet.
type tx struct {
	reader
	*state
	m *Memory
}

// write does one write, unless it is to fail. After an error the transaction is over.
func (t *tx) write(op Op, do func() error) error {
	if err := t.usable(); err != nil {
		return err
	}
	t.failed = t.m.at(op)
	if t.failed == nil {
		t.failed = do()
	}
	return t.failed
}

// appended adds to a list in which each row has a higher number than the one before.
func appended[T any](list []T, v T, number func(T) int64, least int64) ([]T, error) {
	n := number(v)
	if n < least || len(list) > 0 && n <= number(list[len(list)-1]) {
		return list, fmt.Errorf("row %d: what is written stays, and rows are only added at the end", n)
	}
	return append(list, v), nil
}

func (t *tx) AddEvents(events []ledger.Event) error {
	return t.write(AddEvents, func() (err error) {
		for _, e := range events {
			if t.events, err = appended(t.events, cloneEvent(e), func(e ledger.Event) int64 { return e.Seq }, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) AddDecision(d ledger.Decision) error {
	return t.write(AddDecision, func() (err error) {
		t.decisions, err = appended(t.decisions, d, func(d ledger.Decision) int64 { return d.Seq }, 1)
		return err
	})
}

func (t *tx) AddRequest(r ledger.Request) error {
	return t.write(AddRequest, func() error {
		if _, there := t.requests[r.RunID]; there {
			return fmt.Errorf("run %s is there already", r.RunID)
		}
		t.requests[r.RunID] = cloneRequest(r)
		return nil
	})
}

func (t *tx) PutRequest(r ledger.Request) error {
	return t.write(PutRequest, func() error { t.requests[r.RunID] = cloneRequest(r); return nil })
}

func (t *tx) PutBlob(b ledger.Blob) error {
	return t.write(PutBlob, func() error {
		if _, there := t.blobs[b.Digest]; !there {
			b.Used = 0
			t.blobs[b.Digest] = b
		}
		return nil
	})
}

func (t *tx) UseBlob(d canonical.Digest, seq int64) error {
	return t.write(UseBlob, func() error {
		b, there := t.blobs[d]
		if !there {
			return fmt.Errorf("there is no blob %s", d)
		}
		b.Used = max(b.Used, seq)
		t.blobs[d] = b
		return nil
	})
}

func (t *tx) PutToken(k ledger.Token) error {
	return t.write(PutToken, func() error { t.tokens[k.ID] = k; return nil })
}

func (t *tx) PutDelivery(d ledger.Delivery) error {
	return t.write(PutDelivery, func() error {
		if !slices.Contains([]string{"waiting", "done", "given_up"}, d.State) {
			return errors.New("a delivery is waiting, done or given_up")
		}
		t.deliveries[deliveryKey{d.Seq, d.Hook}] = d
		return nil
	})
}

func (t *tx) SetDelivered(hook string, seq int64) error {
	return t.write(Delivered, func() error { t.delivered[hook] = seq; return nil })
}

func (t *tx) Prune(upTo int64, runs []string) error {
	return t.write(Prune, func() error {
		keep := sort.Search(len(t.events), func(i int) bool { return t.events[i].Seq > upTo })
		t.events = slices.Clone(t.events[keep:])
		t.decisions = slices.DeleteFunc(slices.Clone(t.decisions), func(d ledger.Decision) bool { return slices.Contains(runs, d.RunID) })
		for _, run := range runs {
			delete(t.requests, run)
		}
		maps.DeleteFunc(t.deliveries, func(k deliveryKey, _ ledger.Delivery) bool { return k.seq <= upTo })
		maps.DeleteFunc(t.blobs, func(_ canonical.Digest, b ledger.Blob) bool { return b.Used > 0 && b.Used <= upTo })
		return nil
	})
}
