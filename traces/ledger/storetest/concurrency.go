package storetest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/google/uuid"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

func snapshot(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	writer := h.open(t, path)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, entry(1, id(1))), tx.AddRun(request(1)))
	})
	view(t, s, func(r ledger.Reader) {
		if e, err := last(r); err != nil || e != 1 {
			t.Fatalf("the last entry is %d, %v", e, err)
		}
		moved := request(1)
		moved.Status = ledger.Executed
		update(t, writer, func(tx ledger.Tx) error {
			return errors.Join(add(tx, entry(2, id(1))), tx.PutRun(moved))
		})
		update(t, s, func(tx ledger.Tx) error {
			return errors.Join(add(tx, entry(3, id(1))), tx.AddRun(request(2)))
		})
		wantEqual(t, "Entries", []int64{1}, indexes(list(t, r.Entries(0))))
		wantEqual(t, "Requests", []ledger.RunRow{request(1)}, list(t, r.Runs(ledger.Filter{})))
	})
	wantEqual(t, "Entries after it", []int64{1, 2, 3}, indexes(collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) })))
}

// glance checks that each read sees all earlier commits of any process, and that a started sequence
// does not change.
func glance(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	writer := h.open(t, path)
	put := func(by ledger.Store, index int64) {
		update(t, by, func(tx ledger.Tx) error { return add(tx, entry(index, id(1))) })
	}
	put(s, 1)
	var kept ledger.Reader
	err := s.ReadCommitted(context.Background(), func(r ledger.Reader) error {
		kept = r
		for seq, by := range []ledger.Store{1: nil, 2: writer, 3: s} {
			if by != nil {
				put(by, int64(seq))
			}
			if e, err := last(r); seq > 0 && (err != nil || e != int64(seq)) {
				t.Errorf("the last entry is %d, %v, want %d", e, err, seq)
			}
		}
		var got []int64
		for e, err := range r.Entries(0) {
			if err != nil {
				return err
			}
			if got = append(got, e.Index); e.Index == 1 {
				put(writer, 4)
			}
		}
		wantEqual(t, "Entries", []int64{1, 2, 3}, got)
		for range r.Entries(0) { // a loop that breaks before the end
			break
		}
		wantEqual(t, "Entries after it", []int64{1, 2, 3, 4}, indexes(list(t, r.Entries(0))))
		return nil
	})
	if err != nil {
		t.Fatalf("ReadCommitted: %v", err)
	}
	if _, err := kept.End(); err == nil {
		t.Error("a glance that is over can be read")
	}
	wanted := errors.New("wanted")
	if err := s.ReadCommitted(context.Background(), func(ledger.Reader) error { return wanted }); !errors.Is(err, wanted) {
		t.Errorf("ReadCommitted = %v, want its function's error", err)
	}
	update(t, s, func(tx ledger.Tx) error { // waits for no writer, and sees only committed data
		if err := add(tx, entry(5, id(1))); err != nil {
			return err
		}
		return s.ReadCommitted(context.Background(), func(r ledger.Reader) error {
			e, err := last(r)
			if e != 4 {
				t.Errorf("the last entry is %d beside a writer, want 4", e)
			}
			return err
		})
	})
}

func viewBesideWriter(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	update(t, s, func(tx ledger.Tx) error {
		if err := add(tx, entry(1, id(1))); err != nil {
			return err
		}
		nothing(t, s) // would never return if it waited for this function to end
		nothing(t, other)
		return nil
	})
}

func contexts(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	cancelled, end := context.WithCancel(context.Background())
	end()
	called := false
	if err := s.Update(cancelled, func(ledger.Tx) error { called = true; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Update = %v, want the context's error", err)
	}
	if err := s.View(cancelled, func(ledger.Reader) error { called = true; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("View = %v, want the context's error", err)
	}
	if err := s.ReadCommitted(cancelled, func(ledger.Reader) error { called = true; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadCommitted = %v, want the context's error", err)
	}
	if called {
		t.Error("a function was called though the context was over")
	}
	ctx, end := context.WithCancel(context.Background())
	err := s.Update(ctx, func(tx ledger.Tx) error {
		if err := writeAll(tx); err != nil {
			return err
		}
		end()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update = %v, want the context's error", err)
	}
	nothing(t, s)

	ctx, end = context.WithCancel(context.Background())
	update(t, s, func(ledger.Tx) error {
		waiting := make(chan error)
		go func() { waiting <- s.Update(ctx, writeAll) }()
		end()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("the writer that waits returns %v, want the context's error", err)
		}
		return nil
	})
	nothing(t, s)
	update(t, s, writeAll)
	ctx, end = context.WithCancel(context.Background())
	err = s.View(ctx, func(r ledger.Reader) error {
		end()
		_, err := r.End()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("View = %v, want the context's error", err)
	}
}

// Size of the concurrent count.
const (
	counters = 4  // goroutines of each store
	rounds   = 40 // increments of each goroutine
)

// counter returns the current count.
func counter(r ledger.Reader) (int64, error) {
	n, err := r.NextDelivery("counter")
	if errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	return n, err
}

// count increments the counter in several goroutines. If another writer wrote between the read and
// the write, an increment would be lost.
func count(s ledger.Store) error {
	errs := make(chan error)
	for range counters {
		go func() {
			for range rounds {
				err := s.Update(context.Background(), func(tx ledger.Tx) error {
					n, err := counter(tx)
					return errors.Join(err, add(tx, entry(n+1, "")), tx.SetNextDelivery("counter", n+1))
				})
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var joined error
	for range counters {
		joined = errors.Join(joined, <-errs)
	}
	return joined
}

func counted(t *testing.T, s ledger.Store, want int) {
	t.Helper()
	got := indexes(collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) }))
	if len(got) != want || got[0] != 1 || got[want-1] != int64(want) {
		t.Errorf("%d entries, want 1 to %d", len(got), want)
	}
	if n := ask(t, s, func(r ledger.Reader) (int64, error) { return counter(r) }); n != int64(want) {
		t.Errorf("counted to %d, want %d", n, want)
	}
}

func increments(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	var group sync.WaitGroup
	for _, s := range []ledger.Store{s, other} {
		group.Go(func() {
			if err := count(s); err != nil {
				t.Error(err)
			}
		})
	}
	group.Go(func() { // concurrent readers see whole commits only
		for range rounds {
			view(t, s, func(r ledger.Reader) {
				n, err := counter(r)
				if events := len(list(t, r.Entries(0))); err != nil || int64(events) != n {
					t.Errorf("a view has %d entries and counts %d, %v", events, n, err)
				}
			})
		}
	})
	group.Wait()
	counted(t, s, 2*counters*rounds)
}

func reopened(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	update(t, s, writeAll)
	check.NoError(t, s.Close())
	s = h.open(t, path)
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Entries", []ledger.Entry{entry(1, id(1))}, list(t, r.Entries(0)))
		wantEqual(t, "Requests", []ledger.RunRow{request(1)}, list(t, r.Runs(ledger.Filter{})))
		wantEqual(t, "Blobs", []ledger.Blob{blob("b")}, list(t, r.Blobs()))
	})
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return add(tx, entry(1, id(1))) }); err == nil {
		t.Error("an event can be added twice after the store was closed")
	}
	update(t, s, func(tx ledger.Tx) error { return add(tx, entry(2, id(1))) })
}

func closed(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := s.Update(context.Background(), writeAll); err == nil {
		t.Error("a closed store can be written")
	}
	if err := s.View(context.Background(), func(ledger.Reader) error { return nil }); err == nil {
		t.Error("a closed store can be read")
	}
	if err := s.ReadCommitted(context.Background(), func(ledger.Reader) error { return nil }); err == nil {
		t.Error("a closed store can be glanced at")
	}
}

// newOwner draws an owner's id.
func newOwner(t *testing.T) string {
	t.Helper()
	u, err := uuid.NewV7()
	check.NoError(t, err)
	return u.String()
}

// wantGone checks whether the owner is gone.
func wantGone(t *testing.T, s ledger.Store, owner string, want bool) {
	t.Helper()
	if got, err := s.OwnerGone(context.Background(), owner); err != nil || got != want {
		t.Errorf("Gone = %t, %v, want %t", got, err, want)
	}
}

func owners(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	a, b := newOwner(t), newOwner(t)
	wantGone(t, s, a, true) // no process has owned it
	release, err := s.AcquireOwnership(context.Background(), a)
	check.NoError(t, err)
	for range 2 {
		wantGone(t, s, a, false)
		wantGone(t, other, a, false)
		wantGone(t, s, b, true)
	}
	for _, s := range []ledger.Store{s, other} {
		if _, err := s.AcquireOwnership(context.Background(), a); err == nil {
			t.Error("the same owner is owned twice")
		}
	}
	check.NoError(t, release())
	wantGone(t, s, a, true)
	wantGone(t, other, a, true)
	again, err := other.AcquireOwnership(context.Background(), a)
	if err != nil {
		t.Fatalf("an owner that is gone cannot be owned: %v", err)
	}
	wantGone(t, s, a, false)
	_ = release() // a second release must not release another owner's lock
	wantGone(t, s, a, false)
	check.NoError(t, again())
	for _, bad := range []string{"", "..", "../" + a, a + "/..", "host-1", "{" + a + "}", a + "\n", "urn:uuid:" + a} {
		if _, err := s.AcquireOwnership(context.Background(), bad); err == nil {
			t.Errorf("Own(%q) succeeds", bad)
		}
		if is, err := s.OwnerGone(context.Background(), bad); err == nil || is {
			t.Errorf("Gone(%q) = %t, %v: nobody can say", bad, is, err)
		}
	}
}

// ownersAtOnce checks concurrent calls while an owner is acquired and released: each caller gets an
// answer that was true at some time, and no error.
func ownersAtOnce(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	dead, alive := newOwner(t), newOwner(t)
	release, err := s.AcquireOwnership(context.Background(), alive)
	check.NoError(t, err)
	var group sync.WaitGroup
	for range counters {
		group.Go(func() {
			for range rounds {
				wantGone(t, other, alive, false)
				wantGone(t, other, dead, true)
				mine := newOwner(t)
				release, err := s.AcquireOwnership(context.Background(), mine)
				if err != nil {
					t.Error(err)
					return
				}
				wantGone(t, other, mine, false)
				if err := release(); err != nil {
					t.Error(err)
				}
				wantGone(t, other, mine, true)
			}
		})
	}
	group.Wait()
	if err := release(); err != nil {
		t.Error(err)
	}
}
