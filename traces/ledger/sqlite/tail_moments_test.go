package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// TestTailMoments lets all end at each moment at which tail and file differ in another way, and opens what is left.
func TestTailMoments(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name        string
		do          func(t *testing.T, s *Store) // after event 1 was written in the file
		after       func(t *testing.T, path string)
		first, last int64
		kept        bool // only the tail has some commits
	}{
		{name: "taken", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 2); settles(t, s) }, first: 1, last: 2},
		{name: "kept", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 6) }, first: 1, last: 6, kept: true},
		{name: "settled", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 6); settles(t, s) }, first: 1, last: 6},
		{name: "some-settled", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 4)
			settles(t, s)
			keeps(t, s, 5, 6)
		}, first: 1, last: 6, kept: true},
		{name: "restarted", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 6); restarts(t, s) }, first: 1, last: 6},
		{name: "restarted-and-kept", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 4)
			restarts(t, s)
			keeps(t, s, 5, 5)
		}, first: 1, last: 5, kept: true},
		{name: "written-in-the-file", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 4)
			inFile(t, s, adds("x", 5, 5, 8))
			keeps(t, s, 6, 6)
		}, first: 1, last: 6, kept: true},
		{name: "pruned", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 4)
			inFile(t, s, func(tx ledger.Tx) error { return errors.Join(tx.Prune(3, nil), adds("x", 5, 5, 8)(tx)) })
			keeps(t, s, 6, 7)
		}, first: 4, last: 7, kept: true},
		{name: "all-in-the-tail-was-pruned", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 4)
			inFile(t, s, func(tx ledger.Tx) error { return errors.Join(tx.Prune(4, nil), adds("x", 5, 5, 8)(tx)) })
		}, first: 5, last: 5},
		{name: "brought-in-and-the-end-not-noted", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 6) }, after: func(t *testing.T, path string) {
			s := leftOpen(t, path)
			if left, err := s.tail.seize(); err != nil || !left {
				t.Fatalf("seize() = %t, %v", left, err)
			}
			if err := errors.Join(s.tail.bringIn(), s.tail.file.Unlock(), s.writer.close()); err != nil {
				t.Fatal(err)
			}
		}, first: 1, last: 6},
		{name: "ended-while-it-is-brought-in", do: func(t *testing.T, s *Store) { keeps(t, s, 2, 6) }, after: func(t *testing.T, path string) {
			s := leftOpen(t, path)
			err := s.transact(ctx, func(tx ledger.Tx) error { return errors.Join(adds("x", 2, 4, 8)(tx), errors.New("and here it ends")) })
			if err == nil {
				t.Error("the transaction did not fail")
			}
			if err := s.writer.close(); err != nil {
				t.Fatal(err)
			}
		}, first: 1, last: 6, kept: true},
		{name: "let-go-of", do: func(t *testing.T, s *Store) {
			keeps(t, s, 2, 6)
			if err := s.tail.letGo(); err != nil {
				t.Fatal(err)
			}
		}, first: 1, last: 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := holder(t, path)
			s.tail.wanted = false
			commits(t, s, 1, 1)
			s.tail.wanted = true
			tt.do(t, s)
			left := crash(t, path)
			if tt.after != nil {
				tt.after(t, left)
			}
			bothRead(t, left, tt.first, tt.last)
			if alone := crash(t, left); tt.kept {
				if err := os.Remove(alone + tail.Suffix); err != nil {
					t.Fatal(err)
				}
				if got := foundBy(t, openings[0].open, alone); len(got) >= len(from(tt.first, tt.last)) {
					t.Errorf("all events stand in the file: %v", got)
				}
			}
		})
	}
}

// bothRead opens the left files once alone, and then with another process, which continues.
func bothRead(t *testing.T, left string, first, last int64) {
	t.Helper()
	for _, o := range openings {
		path := crash(t, left)
		if diff := cmp.Diff(from(first, last), foundBy(t, o.open, path)); diff != "" {
			t.Errorf("%s reads something else (-want +got):\n%s", o.name, diff)
		}
		next := holder(t, path)
		keeps(t, next, last+1, last+1)
		got, err := found(next)
		if diff := cmp.Diff(from(first, last+1), got); err != nil || diff != "" {
			t.Errorf("who comes after %s reads something else: %v (-want +got):\n%s", o.name, err, diff)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

// leftOpen is a store of what was left, of which nothing was brought in.
func leftOpen(t *testing.T, path string) *Store {
	t.Helper()
	s := newStore(path, BusyTimeout)
	var err error
	if s.file, err = identify(path, os.Lstat); err == nil {
		err = errors.Join(s.openWriter(), s.tail.open(true))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func restarts(t *testing.T, s *Store) {
	t.Helper()
	if err := s.tail.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// inFile commits in the file, while the ledger is held: calls write no tokens.
func inFile(t *testing.T, s *Store, do func(ledger.Tx) error) {
	t.Helper()
	before := s.Stats().Kept
	err := s.Update(t.Context(), func(tx ledger.Tx) error { return errors.Join(tx.PutToken(ledger.Token{ID: "k"}), do(tx)) })
	if err != nil {
		t.Fatal(err)
	}
	if s.Stats().Kept != before || !s.tail.held {
		t.Fatal("it was kept in the tail, or the ledger let go of")
	}
}

// TestTailHeaderOfBefore: the power has failed, and the header that was not flushed is not there. What stands behind the one before it
// is in the file, also where a record that nobody was told of has overwritten the first.
func TestTailHeaderOfBefore(t *testing.T) {
	for _, torn := range []bool{false, true} {
		t.Run(fmt.Sprintf("overwritten=%t", torn), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := holder(t, path)
			keeps(t, s, 1, 5)
			header := readTail(t, path)[tailHeader:tailHeaderEnd]
			restarts(t, s)
			if torn {
				keeps(t, s, 6, 6)
			}
			left := crash(t, path)
			changeTail(t, left, func(b []byte) []byte {
				return append(append(b[:tailHeader:tailHeader], header...), b[tailHeaderEnd:]...)
			})
			bothRead(t, left, 1, 5)
		})
	}
}
