// Package storetest tests whether a [ledger.Store] satisfies the contract of all stores.
package storetest

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"testing"

	"pgfsm/traces/ledger"
)

// A Harness makes stores for the suite.
type Harness struct {
	// New prepares a place for a new store, and returns its path. If New is nil, the path is that
	// of a file in a folder of its own.
	New func(t testing.TB) string
	// Open opens the store of that path, and makes it if it does not exist. Several stores can be
	// open for one path. The suite closes them.
	Open func(t testing.TB, path string) ledger.Store
	// Query returns what a program that knows only SQL reads from the store of that path: the
	// columns' names, and then the rows as text.
	Query func(t testing.TB, path, query string) [][]string
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"an-empty-store-has-nothing", emptyStore},
		{"rows-come-back-as-they-were", fullRows},
		{"zero-rows-come-back-as-they-were", zeroRows},
		{"text-comes-back-byte-for-byte", oddText},
		{"entries-are-ordered-by-index", entryOrder},
		{"entries-of-runs", entriesOfRuns},
		{"values-that-no-column-can-have", malformedValues},
		{"tokens-and-blobs-are-ordered", tokenAndBlobOrder},
		{"views", Views},
		{"filters", filters},
		{"windows", windows},
		{"counts", counts},
		{"waiting", waiting},
		{"entries-of-a-type", ofType},
		{"deliveries", deliveries},
		{"put-replaces", putReplaces},
		{"add-does-not-replace", addRefuses},
		{"a-token-is-dropped", dropsTokens},
		{"blocks", blocks},
		{"connections", connections},
		{"sessions", sessions},
		{"told", telling},
		{"append-only", appendOnly},
		{"an-error-undoes-all", undoneByError},
		{"a-panic-undoes-all", undoneByPanic},
		{"an-ignored-error-is-not-committed", ignoredError},
		{"a-transaction-is-over-when-its-function-is", usedAfterwards},
		{"a-transaction-reads-what-it-wrote", readsOwnWrites},
		{"sequences-can-be-left-and-nested", nestedSequences},
		{"a-view-is-one-state", snapshot},
		{"a-glance-sees-what-is-there-at-each-read", glance},
		{"a-view-waits-for-no-writer", viewBesideWriter},
		{"contexts", contexts},
		{"no-writer-comes-between", increments},
		{"generations", generations},
		{"reads-ahead", readsAhead},
		{"reopened", reopened},
		{"closed", closed},
		{"pruned", pruned},
		{"pruned-entries-are-added", addsPruned},
		{"tree-of-several-stores", tree},
		{"owners", owners},
		{"owners-asked-at-once", ownersAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

// fresh opens a new store, and returns it with its path.
func (h Harness) fresh(t *testing.T) (ledger.Store, string) {
	t.Helper()
	path := ""
	if h.New != nil {
		path = h.New(t)
	} else {
		path = filepath.Join(t.TempDir(), "ledger.db")
	}
	return h.open(t, path), path
}

func (h Harness) open(t *testing.T, path string) ledger.Store {
	t.Helper()
	s := h.Open(t, path)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// update commits the writes of do.
func update(t *testing.T, s ledger.Store, do func(ledger.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), do); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, s ledger.Store, do func(ledger.Reader)) {
	t.Helper()
	if err := s.View(context.Background(), func(r ledger.Reader) error { do(r); return nil }); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// list collects a sequence.
func list[T any](t *testing.T, rows iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range rows {
		if err != nil {
			t.Fatalf("row %d: %v", len(all), err)
		}
		all = append(all, v)
	}
	return all
}

// ask returns the answer of one question.
func ask[T any](t *testing.T, s ledger.Store, question func(ledger.Reader) (T, error)) T {
	t.Helper()
	var answer T
	view(t, s, func(r ledger.Reader) {
		var err error
		if answer, err = question(r); err != nil {
			t.Fatal(err)
		}
	})
	return answer
}

// collect asks for a sequence and returns its elements.
func collect[T any](t *testing.T, s ledger.Store, question func(ledger.Reader) iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	view(t, s, func(r ledger.Reader) { all = list(t, question(r)) })
	return all
}

// nothing checks that a store holds no row of any kind.
func nothing(t *testing.T, s ledger.Store) {
	t.Helper()
	view(t, s, func(r ledger.Reader) {
		for what, n := range map[string]int{ // in any order
			"entries": len(list(t, r.Entries(0))), "requests": len(list(t, r.Runs(ledger.Filter{}))),
			"blobs":  len(list(t, r.Blobs())),
			"tokens": len(list(t, r.Tokens())), "blocks": len(list(t, r.Blocks())), "connections": len(list(t, r.Connections())),
			"deliveries": len(list(t, r.Deliveries("", late, 10))),
			"sessions":   len(list(t, r.Sessions())),
		} {
			if n != 0 {
				t.Errorf("the store has %d %s, want none", n, what)
			}
		}
		run, err := r.FindWaiting(ledger.RepeatedCall{})
		missing(t, "Waiting", run, err)
		e, err := r.LastOfType(ledger.LedgerPruned)
		missing(t, "LastOf", e, err)
		n, err := r.NextDelivery("hook")
		missing(t, "Delivered", n, err)
	})
}

// missing checks that err is ErrNotFound.
func missing[T any](t *testing.T, what string, _ T, err error) {
	t.Helper()
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%s: error %v, want ErrNotFound", what, err)
	}
}
