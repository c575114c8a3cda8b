package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// grow commits blobs of 100 kB, and returns the largest size that the write-ahead log had.
func grow(t *testing.T, s *Store, from, to int) int64 {
	t.Helper()
	text := strings.Repeat("x", 100<<10)
	largest := int64(0)
	for i := from; i < to; i++ {
		err := s.Update(context.Background(), func(tx ledger.Tx) error {
			return tx.PutBlob(ledger.Blob{Digest: canonical.Digest(fmt.Sprintf("%06d", i)), Kind: ledger.BlobValue, Text: text})
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	return largest
}

// slack is more than what is written between two looks at the log.
const slack = 3 * checkpointBytes

// inTheWay is how far the log may grow beyond that while the checkpointer and the writer get into each other's way, which depends on
// the machine. It is a third of what the test writes.
const inTheWay = 20 << 20

// freshAlone is a store that nothing but its writer moves pages of.
func freshAlone(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "ledger.db"), Options{unmoved: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestLogIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		open  func(*testing.T) *Store
		slack int64
	}{{"writer-alone", freshAlone, slack}, {"with-the-checkpointer", fresh, slack + inTheWay}} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.open(t)
			s.checkpoints.max = 8 << 20
			if largest := grow(t, s, 0, 600); largest > s.checkpoints.max+tt.slack {
				t.Errorf("60 MB were written, and the log grew to %d bytes", largest)
			}
			if s.Stats().Checkpoints == 0 || s.Stats().Commits != 600 {
				t.Errorf("the counts are %+v", s.Stats())
			}
		})
	}
}

// TestLogBeginsAgain: a reader of an old state keeps the log, for as long as it reads.
func TestLogBeginsAgain(t *testing.T) {
	s := freshAlone(t)
	s.checkpoints.max = 2 << 20
	if err := s.Update(context.Background(), addEvent(1)); err != nil {
		t.Fatal(err)
	}
	var kept int64
	err := s.View(context.Background(), func(r ledger.Reader) error {
		if _, err := r.Last(); err != nil {
			return err
		}
		kept = grow(t, s, 0, 100)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept < 10<<20 {
		t.Errorf("the log had %d bytes while somebody read an old state: it did not keep what was written since", kept)
	}
	if after := grow(t, s, 100, 300); after > kept+slack {
		t.Errorf("the log grew from %d to %d bytes after the reader had ended", kept, after)
	}
}

// TestQuiet: when nobody writes all of the log is moved.
func TestQuiet(t *testing.T) {
	s := freshAlone(t)
	if err := s.Update(context.Background(), addEvent(1)); err != nil {
		t.Fatal(err)
	}
	c, err := dial(context.Background(), s.path, restartWait, url.Values{"mode": {"rw"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if s.checkpoints.move(s, c, false, restartFrames); s.Stats().Checkpoints != 0 {
		t.Error("a few pages are moved under load")
	}
	s.checkpoints.move(s, c, true, restartFrames)
	if length, moved, err := checkpoint(c, "NOOP"); err != nil || length != moved || s.Stats().Checkpoints != 1 {
		t.Errorf("%d of %d pages are moved, %v, with %+v", moved, length, err, s.Stats())
	}
	s.checkpoints.move(s, c, true, restartFrames)
	if n := s.Stats().Checkpoints; n != 1 {
		t.Errorf("%d checkpoints are counted though there was nothing to move", n)
	}
	s.checkpoints.move(s, c, true, 0)
	grow(t, s, 0, 1)
	at := s.checkpoints.move(s, c, true, 0)
	if at != restartFrames {
		t.Errorf("writers wait again at %d pages, want %d", at, restartFrames)
	}
	grow(t, s, 1, 2)
	if length, _, err := checkpoint(c, "NOOP"); err != nil || length > 60 {
		t.Errorf("the log has %d pages, %v: it did not begin again", length, err)
	}
}

// TestRefusedUpdatesAreNoCommits: what writes nothing flushes nothing.
func TestRefusedUpdatesAreNoCommits(t *testing.T) {
	s := fresh(t)
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { _, err := tx.Delivered("h"); return err }); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Commits; n != 0 {
		t.Errorf("%d commits, want none", n)
	}
	if err := s.Update(context.Background(), addEvent(1)); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Commits; n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
}
