//go:build unix

package sqlite

import (
	"context"
	"errors"
	"os"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, fileMode)
	}
	check.NoError(t, err)
}

// TestMovedFile: what is recorded in a file that nobody finds is not recorded. Windows does not let an open file be moved.
func TestMovedFile(t *testing.T) {
	for _, tc := range []struct {
		name string
		move func(t *testing.T, path, away string)
		both bool // there is a file at the path, too
	}{
		{"moved", func(t *testing.T, path, away string) { rename(t, path, away) }, false},
		{"copy-put-in-place", func(t *testing.T, path, away string) { rename(t, path, away); copied(t, away, path) }, true},
		{"replaced-at-once", func(t *testing.T, path, away string) {
			copied(t, path, path+".new")
			check.NoError(t, os.Link(path, away))
			rename(t, path+".new", path)
		}, true},
		{"a-link-put-in-place", func(t *testing.T, path, away string) {
			rename(t, path, away)
			check.NoError(t, os.Symlink(away, path))
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := closed(t)
			away := path + ".away"
			s, err := Open(path)
			check.NoError(t, err)
			defer s.Close()
			auditor, err := OpenReadOnly(path)
			check.NoError(t, err)
			defer auditor.Close()
			tc.move(t, path, away)
			refused(t, s.Update(context.Background(), addEntry(2)), ErrMoved, path, "start it again")
			refused(t, s.View(context.Background(), func(ledger.Reader) error { return nil }), ErrMoved, path, "start it again")
			refused(t, s.ReadCommitted(context.Background(), func(ledger.Reader) error { return nil }), ErrMoved, path, "start it again")
			err = auditor.View(context.Background(), func(ledger.Reader) error { return nil })
			if link := tc.name == "a-link-put-in-place"; link != (err == nil) || !link && !errors.Is(err, ErrMoved) {
				t.Errorf("an auditor's View = %v", err)
			}
			for _, err := range []error{auditor.Close(), s.Close()} {
				check.NoError(t, err)
			}
			for _, file := range []string{path, away} {
				if file == path && !tc.both {
					continue
				}
				r, err := OpenReadOnly(file)
				check.NoError(t, err)
				if n := entries(t, r); n != 1 {
					t.Errorf("%s has %d entries, want 1", file, n)
				}
				r.Close()
			}
		})
	}
	t.Run("put-back", func(t *testing.T) {
		s := fresh(t)
		rename(t, s.path, s.path+".away")
		refused(t, s.Update(context.Background(), addEntry(1)), ErrMoved, s.path, "put back")
		rename(t, s.path+".away", s.path)
		if err := s.Update(context.Background(), addEntry(1)); err != nil {
			t.Error(err)
		}
	})
	t.Run("moved-while-it-is-written", func(t *testing.T) {
		s := fresh(t)
		err := s.Update(context.Background(), func(tx ledger.Tx) error {
			rename(t, s.path, s.path+".away")
			return addEntry(1)(tx)
		})
		refused(t, err, ErrMoved, s.path, "put back")
		rename(t, s.path+".away", s.path)
		if n := entries(t, s); n != 0 {
			t.Errorf("%d entries, want none", n)
		}
	})
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	check.NoError(t, os.Rename(from, to))
}
