package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
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

func (r *reader) End() (ledger.End, error) {
	entries := r.now().entries
	if err := r.usable(); err != nil || len(entries) == 0 {
		return ledger.End{}, err
	}
	last := &entries[len(entries)-1]
	return ledger.End{Size: last.Index + 1, At: last.At, Type: last.Type}, nil
}

func (r *reader) LastOf(kind ledger.Type) (last ledger.Entry, err error) {
	found := false
	for e, err := range r.EntriesOfType(kind) {
		if err != nil {
			return e, err
		}
		last, found = e, true
	}
	if !found {
		err = fmt.Errorf("the last entry of type %s: %w", kind, ledger.ErrNotFound)
	}
	return last, err
}

func (r *reader) EntriesOfType(kind ledger.Type) iter.Seq2[ledger.Entry, error] {
	return r.those(func(e *ledger.Entry) bool { return e.RunID == "" && e.Type == kind && kind != ledger.MCPPassed })
}

func (r *reader) Entries(from int64) iter.Seq2[ledger.Entry, error] {
	return r.those(func(e *ledger.Entry) bool { return e.Index >= from })
}

func (r *reader) EntriesOf(run string) iter.Seq2[ledger.Entry, error] {
	return r.those(func(e *ledger.Entry) bool { return run != "" && e.RunID == run })
}

// those returns the entries that fit.
func (r *reader) those(fit func(*ledger.Entry) bool) iter.Seq2[ledger.Entry, error] {
	return rows(r, func(s *state) (all []ledger.Entry) {
		for i := range s.entries {
			if fit(&s.entries[i]) {
				all = append(all, cloneEntry(s.entries[i]))
			}
		}
		return all
	})
}

// ReadHashes implements [tlog.HashReader].
func (r *reader) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(ids))
	for i, id := range ids {
		var err error
		if all[i], err = row(r, func(s *state) map[int64]tlog.Hash { return s.hashes }, id); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *reader) CountHashes() (int64, error) {
	return int64(len(r.now().hashes)), r.usable()
}

func (r *reader) Request(run string) (ledger.Request, error) {
	q, err := row(r, requestsOf, run)
	return cloneRequest(q), err
}

func (r *reader) Reached(run string) (int64, error) {
	q, err := row(r, requestsOf, run)
	return q.Entry, err
}

func (r *reader) Requests(f ledger.Filter) iter.Seq2[ledger.Request, error] {
	return rows(r, func(s *state) []ledger.Request {
		all := sorted(s.requests, func(a, b ledger.Request) int { return strings.Compare(a.RunID, b.RunID) })
		all = slices.DeleteFunc(all, func(q ledger.Request) bool { return !s.fits(&f, &q) })
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

func (r *reader) Counts(newest int, since string, unit int) iter.Seq2[ledger.Count, error] {
	return rows(r, func(s *state) []ledger.Count {
		groups := make(map[ledger.Count]ledger.Count)
		runs := slices.Sorted(maps.Keys(s.requests))
		for _, run := range runs[max(0, len(runs)-newest):] {
			q := s.requests[run]
			key := ledger.Count{Status: q.Status, Code: q.Code}
			if q.At >= since {
				key.At = q.At[:min(unit, len(q.At))]
			}
			one, known := groups[key]
			if !known {
				one = key
				one.First = q.At
			}
			one.First, one.Runs = min(one.First, q.At), one.Runs+1
			groups[key] = one
		}
		return sorted(groups, func(a, b ledger.Count) int {
			return cmp.Or(strings.Compare(a.At, b.At), cmp.Compare(a.Status, b.Status), strings.Compare(a.Code, b.Code))
		})
	})
}

func (r *reader) Waiting(l ledger.Look) (string, error) {
	if err := r.usable(); err != nil {
		return "", err
	}
	first := ""
	for run, q := range r.now().requests { // the first in their order, in any order
		same := l == ledger.Look{Actor: q.Actor, OnBehalfOf: q.OnBehalfOf, Client: q.Client, Server: q.Server, Tool: q.Tool, Arguments: q.Arguments}
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
func (s *state) fits(f *ledger.Filter, q *ledger.Request) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, q.Status)) &&
		(!f.Open || q.Ended == "") &&
		(!f.Held || q.Binding != "") &&
		(f.Actor == "" || q.Actor == f.Actor) &&
		(f.Short == "" || len(q.RunID) == ledger.RunIDBytes && strings.HasPrefix(ledger.Short(q.RunID), f.Short)) &&
		(f.Who == "" || q.Actor == f.Who || q.Display == f.Who) &&
		(f.Task == "" || q.Task == f.Task) &&
		(f.Server == "" || q.Server == f.Server) &&
		(f.Tool == "" || q.Tool == f.Tool) &&
		(f.Policy == "" || q.Policy == f.Policy) &&
		(f.Code == "" || q.Code == f.Code) &&
		(f.Since == "" || q.Ended == "" || max(q.At, q.Sent) >= f.Since) &&
		(f.Until == "" || q.At < f.Until) &&
		(f.Text == "" || s.mentions(q.Args, f.Text)) &&
		(!f.Counted || q.Sent != "" || q.Ended == "") &&
		(f.After == "" || q.RunID > f.After) &&
		(f.Before == "" || q.RunID < f.Before)
}

// mentions reports whether arguments, or the blob that they refer to, contain a text.
func (s *state) mentions(args, text string) bool {
	if digest, isRef := strings.CutPrefix(args, "@"); isRef {
		args = s.blobs[canonical.Digest(digest)].Text
	}
	return strings.Contains(lower(args), lower(text))
}

// lower is [strings.ToLower] for ASCII letters only.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
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

func blocksOf(s *state) map[string]ledger.Block { return s.blocks }

func (r *reader) Block(name string) (ledger.Block, error) { return row(r, blocksOf, name) }

func (r *reader) Blocks() iter.Seq2[ledger.Block, error] {
	return rows(r, func(s *state) []ledger.Block {
		return sorted(s.blocks, func(a, b ledger.Block) int { return strings.Compare(a.Name, b.Name) })
	})
}

func (r *reader) Deliveries(hook, due string, limit int) iter.Seq2[ledger.Delivery, error] {
	return rows(r, func(s *state) []ledger.Delivery {
		all := sorted(s.deliveries, func(a, b ledger.Delivery) int {
			return cmp.Or(cmp.Compare(a.Entry, b.Entry), strings.Compare(a.Hook, b.Hook))
		})
		all = slices.DeleteFunc(all, func(d ledger.Delivery) bool {
			return d.State != "waiting" || d.Next > due || hook != "" && d.Hook != hook
		})
		return all[:max(min(limit, len(all)), 0)]
	})
}

func (r *reader) Hooks() iter.Seq2[string, error] {
	return rows(r, func(s *state) []string { return slices.Sorted(maps.Keys(s.delivered)) })
}

func (r *reader) Delivered(hook string) (int64, error) {
	return row(r, func(s *state) map[string]int64 { return s.delivered }, hook)
}

func sessionsOf(s *state) map[canonical.Digest]ledger.Session { return s.sessions }

func (r *reader) Session(secret canonical.Digest) (ledger.Session, error) {
	s, err := row(r, sessionsOf, secret)
	return cloneSession(s), err
}

func (r *reader) Sessions() iter.Seq2[ledger.Session, error] {
	return rows(r, func(s *state) []ledger.Session {
		all := sorted(s.sessions, func(a, b ledger.Session) int { return cmp.Compare(a.Secret, b.Secret) })
		for i := range all {
			all[i] = cloneSession(all[i])
		}
		return all
	})
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

func (t *tx) AddEntry(e ledger.Entry, hashes []tlog.Hash) error {
	return t.write(AddEntry, func() error {
		if n := len(t.entries); e.Index < 0 || n > 0 && e.Index <= t.entries[n-1].Index {
			return fmt.Errorf("entry %d: entries are only added at the end", e.Index)
		}
		if _, there := t.hashes[tlog.StoredHashIndex(0, e.Index)]; there {
			return fmt.Errorf("entry %d is there already", e.Index)
		}
		if e.RunID != "" && slices.ContainsFunc(t.entries, func(o ledger.Entry) bool { return o.RunID == e.RunID && o.N == e.N }) {
			return fmt.Errorf("run %s has an entry %d already", e.RunID, e.N)
		}
		if len(e.Events) > 0 { // otherwise it was pruned
			t.entries = append(t.entries, cloneEntry(e))
		}
		for i, h := range hashes {
			t.hashes[tlog.StoredHashIndex(0, e.Index)+int64(i)] = h
		}
		return nil
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
			t.blobs[b.Digest] = b
		}
		return nil
	})
}

func (t *tx) PutToken(k ledger.Token) error {
	return t.write(PutToken, func() error { t.tokens[k.ID] = k; return nil })
}

func (t *tx) DropToken(id string) error {
	return t.write(DropToken, func() error { delete(t.tokens, id); return nil })
}

func (t *tx) PutBlock(b ledger.Block) error {
	return t.write(PutBlock, func() error { t.blocks[b.Name] = b; return nil })
}

func (t *tx) DropBlock(name string) error {
	return t.write(DropBlock, func() error { delete(t.blocks, name); return nil })
}

func (t *tx) PutDelivery(d ledger.Delivery) error {
	return t.write(PutDelivery, func() error {
		if !slices.Contains([]string{"waiting", "done", "given_up"}, d.State) {
			return errors.New("a delivery is waiting, done or given_up")
		}
		t.deliveries[deliveryKey{d.Entry, d.Hook}] = d
		return nil
	})
}

func (t *tx) SetDelivered(hook string, next int64) error {
	return t.write(Delivered, func() error { t.delivered[hook] = next; return nil })
}

func (t *tx) Gone(owner string) (bool, error) { return t.m.Gone(t.ctx, owner) }

func (t *tx) PutSession(s ledger.Session) error {
	return t.write(PutSession, func() error { t.sessions[s.Secret] = cloneSession(s); return nil })
}

func (t *tx) DropSession(secret canonical.Digest) error {
	return t.write(DropSession, func() error { delete(t.sessions, secret); return nil })
}

func (t *tx) Prune(entries []ledger.Range, runs []string, blobs []canonical.Digest) error {
	return t.write(Prune, func() error {
		gone := func(entry int64) bool {
			return slices.ContainsFunc(entries, func(r ledger.Range) bool { return r.First <= entry && entry <= r.Last })
		}
		t.entries = slices.DeleteFunc(slices.Clone(t.entries), func(e ledger.Entry) bool { return gone(e.Index) })
		for _, run := range runs {
			delete(t.requests, run)
		}
		maps.DeleteFunc(t.deliveries, func(k deliveryKey, _ ledger.Delivery) bool { return gone(k.entry) })
		for _, d := range blobs {
			delete(t.blobs, d)
		}
		return nil
	})
}
