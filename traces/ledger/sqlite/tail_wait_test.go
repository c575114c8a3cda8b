package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"pgfsm/traces/ledger"
)

// TestTailWaitsWithoutAConnection: who waits for another process's tail has no connection meanwhile, and so waits as long as it should, however
// many others do.
func TestTailWaitsWithoutAConnection(t *testing.T) {
	const short = 40 * time.Millisecond
	path := filepath.Join(t.TempDir(), "ledger.db")
	holder := keeping(t, path)
	did(t, holder, put("a", "allowed"))
	holds(t, holder)
	s, err := Open(path, Options{BusyTimeout: short})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range maxReaders { // all of them read, and do not end
		s.reading <- struct{}{}
	}
	ctx, end := context.WithTimeout(t.Context(), unhurried)
	defer end()
	looks := func(r ledger.Reader) error { _, err := r.Last(); return err }
	refused(t, s.View(ctx, looks), ErrLocked, path, "end the program")
	refused(t, s.Glance(ctx, looks), ErrLocked, path, "end the program")
	for range maxReaders {
		<-s.reading
	}
	leaves(t, holder)
	if err := errors.Join(s.View(ctx, looks), s.Glance(ctx, looks)); err != nil {
		t.Error(err)
	}
}

// TestTailUpdateLooksByItself: of those who wait for another process's tail one looks, and may itself wait for an update that waits.
func TestTailUpdateLooksByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	holder, s := keeping(t, path), keeping(t, path)
	did(t, holder, put("a", "allowed"))
	holds(t, holder)
	s.tail.looking <- struct{}{} // a goroutine keeps the looking slot
	done := make(chan error, 1)
	go func() { done <- s.Update(t.Context(), func(tx ledger.Tx) error { return next(tx, "b") }) }()
	for !holder.tail.file.Rung() {
		runtime.Gosched()
	}
	leaves(t, holder)
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-s.tail.looking
}

// TestTailBesideWaitingReaders: who began to read while this process held the ledger, and still waits for a connection, keeps nobody from taking it
// again, or from bringing in what another process has left.
func TestTailBesideWaitingReaders(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprintf("left-by-another=%t", left), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := keeping(t, path)
			did(t, s, put("a", "allowed"))
			holds(t, s)
			for range maxReaders { // all of them read, and do not end
				s.reading <- struct{}{}
			}
			done := make(chan error, 1)
			go func() {
				done <- s.View(t.Context(), func(r ledger.Reader) error { _, err := r.Request("a"); return err })
			}()
			for waits := false; !waits; runtime.Gosched() {
				s.tail.mu.RLock()
				waits = s.tail.shared > 0
				s.tail.mu.RUnlock()
			}
			leaves(t, s)
			want := 2
			if left {
				other := keeping(t, path)
				did(t, other, put("b", "allowed"))
				holds(t, other)
				if err := other.tail.file.Unlock(); err != nil { // as when its process ends
					t.Fatal(err)
				}
				want++
			}
			did(t, s, put("c", "allowed"))
			if !left {
				holds(t, s)
			}
			for range maxReaders {
				<-s.reading
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := events(t, s); n != want {
				t.Errorf("%d events, want %d", n, want)
			}
		})
	}
}
