package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/ledger/storetest"
)

// TestStoreWithTail holds a store that keeps commits in the tail to what every store must do.
func TestStoreWithTail(t *testing.T) {
	storetest.Run(t, storetest.Harness{Processes: true, Holds: true, Open: func(t testing.TB, path string) ledger.Store { return openTail(t, path) }})
}

func openTail(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{Tail: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openPlain(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newID(t testing.TB) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// commitCall writes a part of a call.
func commitCall(t testing.TB, s ledger.Store, seq int64, c *call, part func(*call, ledger.Tx) error) int64 {
	t.Helper()
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		end, err := tx.End()
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		if end.Seq != seq {
			return fmt.Errorf("the ledger ends with %d, want %d", end.Seq, seq)
		}
		seq = c.from(end.Seq)
		return part(c, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// A dump is all that a ledger holds of calls.
type dump struct {
	Events    []ledger.Event
	Requests  []ledger.Request
	Decisions []ledger.Decision
	Steps     []ledger.Step
	Blobs     []ledger.Blob
}

func dumped(t testing.TB, s ledger.Store) (d dump) {
	t.Helper()
	err := s.View(context.Background(), func(r ledger.Reader) (err error) {
		var errs [4]error
		d.Events, errs[0] = listed(r.Events(0))
		d.Requests, errs[1] = listed(r.Requests(ledger.Filter{}))
		d.Decisions, errs[2] = listed(r.Decisions(0))
		d.Blobs, errs[3] = listed(r.Blobs())
		for run, runErr := range r.Runs() {
			steps, stepErr := listed(r.Steps(run))
			d.Steps = append(d.Steps, steps...)
			err = errors.Join(err, runErr, stepErr)
		}
		return errors.Join(err, errors.Join(errs[:]...))
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func listed[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// TestTailSameLedger writes the same calls with and without a tail, in several orders, and compares what is read.
func TestTailSameLedger(t *testing.T) {
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = newID(t)
	}
	orders := []struct {
		name string
		next func(i int) (call int, ends bool) // of 80 commits
	}{
		{"one-after-the-other", func(i int) (int, bool) { return i / 2, i%2 == 1 }},
		{"all-leave-first", func(i int) (int, bool) { return i % 40, i >= 40 }},
		{"five-at-a-time", func(i int) (int, bool) { return i/10*5 + i%5, i%10 >= 5 }},
	}
	for _, order := range orders {
		t.Run(order.name, func(t *testing.T) {
			var dumps []dump
			for _, open := range []func(testing.TB, string) *sqlite.Store{openPlain, openTail} {
				path := filepath.Join(t.TempDir(), "ledger.db")
				s := open(t, path)
				calls := make([]call, len(ids))
				for i := range calls {
					calls[i] = newCall(ids[i])
				}
				seq := int64(0)
				for i := range 2 * len(calls) {
					n, ends := order.next(i)
					part := (*call).leaves
					if ends {
						part = (*call).ends
					}
					seq = commitCall(t, s, seq, &calls[n], part)
					if i == 33 { // another process reads in between
						if got := dumped(t, s); got.Events[len(got.Events)-1].Seq != seq {
							t.Errorf("%d commits are not to be seen", i)
						}
					}
				}
				if kept := s.Stats().Kept; (kept > 0) != (len(dumps) == 1) {
					t.Errorf("%d commits were kept in the tail", kept)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				reader, err := sqlite.OpenReadOnly(path)
				if err != nil {
					t.Fatal(err)
				}
				dumps = append(dumps, dumped(t, reader))
				if err := reader.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(dumps[0], dumps[1]); diff != "" {
				t.Errorf("with a tail it is another ledger (-without +with):\n%s", diff)
			}
			if len(dumps[0].Events) != 6*len(ids) || len(dumps[0].Steps) != 12*len(ids) || len(dumps[0].Blobs) != 2 {
				t.Errorf("%d events, %d steps, %d blobs", len(dumps[0].Events), len(dumps[0].Steps), len(dumps[0].Blobs))
			}
		})
	}
}

// TestTailOfTwo lets two stores write the same ledger in turns: what one has kept, the other sees.
func TestTailOfTwo(t *testing.T) {
	for _, second := range []struct {
		name string
		open func(testing.TB, string) *sqlite.Store
	}{{"with-a-tail", openTail}, {"without", openPlain}} {
		t.Run(second.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			stores := []*sqlite.Store{openTail(t, path), second.open(t, path)}
			seq := int64(0)
			var want []string
			for i := range 12 {
				c := newCall(newID(t))
				want = append(want, c.request.RunID)
				for k, part := range []func(*call, ledger.Tx) error{(*call).leaves, (*call).ends} {
					seq = commitCall(t, stores[(i+k)%2], seq, &c, part)
				}
				if i%4 == 0 {
					var got []string
					for _, q := range dumped(t, stores[i/4%2]).Requests {
						got = append(got, q.RunID)
					}
					if !slices.Equal(got, want) {
						t.Errorf("call %d: %v are seen, want %v", i, got, want)
					}
				}
			}
			for _, s := range stores {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
