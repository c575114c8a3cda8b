package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// unhurried is how long a test waits for what must happen before it says that it does not.
const unhurried = time.Minute

// keeping opens a store that keeps commits in the tail, and brings them into the file only when it must.
func keeping(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{unmoved: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.tail.wanted = true // and nobody looks after it from time to time
	return s
}

// next is an event behind all that are there.
func next(tx ledger.Tx, run string) error {
	end, err := tx.End()
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	return tx.AddEvents([]ledger.Event{{Seq: end.Seq + 1, RunID: run, Type: ledger.RequestCreated, Payload: []byte("{}")}})
}

// did commits what was done, with an event.
func did(t *testing.T, s *Store, do func(ledger.Tx) error) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), unhurried)
	defer end()
	if err := s.Update(ctx, func(tx ledger.Tx) error { return errors.Join(do(tx), next(tx, "z")) }); err != nil {
		t.Fatal(err)
	}
}

func put(run, status string) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		return tx.PutRequest(ledger.Request{RunID: run, Status: ledger.Status(status), Seq: 1})
	}
}

// leaves lets a store let go of the ledger, and take it again at once when it wants to.
func leaves(t *testing.T, s *Store) {
	t.Helper()
	s.tail.updating <- struct{}{}
	defer func() { <-s.tail.updating }()
	if err := s.tail.letGo(); err != nil {
		t.Fatal(err)
	}
	tries(s)
}

// tries lets a store take the ledger, and keep it, whatever use the tail was until now.
func tries(s *Store) {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	s.tail.again, s.tail.vain = time.Time{}, 0
}

func holds(t *testing.T, s *Store) {
	t.Helper()
	if _, held := s.tail.reached(); !held {
		t.Fatal("it does not hold the ledger")
	}
}

// TestTailUpdatesWaitForNoReader: readers may wait for what an update has, so it must not wait for one of them to end.
func TestTailUpdatesWaitForNoReader(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(ledger.Tx) error
	}{
		{"takes-the-ledger", func(ledger.Tx) error { return nil }},
		{"asks-the-file", func(tx ledger.Tx) error { return tx.PutBlob(ledger.Blob{Digest: "d"}) }},
		{"goes-on-in-the-file", func(tx ledger.Tx) error { return tx.SetDelivered("hook", 1) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := keeping(t, filepath.Join(t.TempDir(), "ledger.db"))
			for range maxReaders { // all of them read, and do not end
				s.reading <- struct{}{}
			}
			did(t, s, tc.do)
			holds(t, s)
			for range maxReaders {
				<-s.reading
			}
		})
	}
}

// TestTailOfFullReaders: so many views, glances and updates at once that each of them has to wait for others.
func TestTailOfFullReaders(t *testing.T) {
	s := keeping(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, end := context.WithTimeout(t.Context(), unhurried)
	defer end()
	var all sync.WaitGroup
	for i := range 4 * maxReaders {
		all.Go(func() {
			for range 20 {
				look := s.View
				if i%2 == 0 {
					look = s.Glance
				}
				if err := look(ctx, func(r ledger.Reader) error { _, err := r.Delivered("hook"); return err }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 60 {
		did(t, s, func(tx ledger.Tx) error {
			if i%2 == 0 {
				return nil
			}
			return tx.SetDelivered("hook", int64(i))
		})
		if i%6 == 0 {
			leaves(t, s)
		}
	}
	all.Wait()
}

// A brief is a context that ends when it has been asked so often whether it has.
type brief struct {
	context.Context
	left atomic.Int64
}

func (b *brief) Err() error {
	if b.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestTailKnowsAllOrNothing: what is known of the ledger was read as a whole, whenever the reading of it was broken off.
func TestTailKnowsAllOrNothing(t *testing.T) {
	s := keeping(t, filepath.Join(t.TempDir(), "ledger.db"))
	did(t, s, func(tx ledger.Tx) error { return tx.AddDecision(ledger.Decision{Seq: 1}) })
	want := int64(1)
	for n := range int64(40) {
		did(t, s, func(tx ledger.Tx) error { return tx.SetDelivered("hook", n) })
		want++
		tries(s)
		s.tail.mu.Lock()
		s.tail.stale = true // as when it could not be read behind that
		s.tail.mu.Unlock()
		short := &brief{Context: t.Context()}
		short.left.Store(n)
		if err := s.Update(short, func(tx ledger.Tx) error { return next(tx, "b") }); err == nil {
			want++
		}
		did(t, s, func(tx ledger.Tx) error {
			if end, err := tx.End(); err != nil || end.Seq != want {
				t.Errorf("broken off after %d: End = %d, %v, want %d", n, end.Seq, err, want)
			}
			if tx.(*quick).t.lastDecision() != 1 {
				t.Errorf("broken off after %d: the last decision is not known", n)
			}
			return nil
		})
		want++
	}
	if got := int64(events(t, s)); got != want {
		t.Errorf("%d events, want %d", got, want)
	}
}

// TestTailThatCannotGoOnInTheFile: whatever is asked of the transaction then, and of others of its batch, it says so.
func TestTailThatCannotGoOnInTheFile(t *testing.T) {
	s := keeping(t, filepath.Join(t.TempDir(), "ledger.db"))
	did(t, s, put("a", "allowed"))
	if err := os.Rename(s.path, s.path+".away"); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.Last()
		for name, err := range map[string]error{ // in any order
			"Last":        err,
			"AddEvents":   tx.AddEvents([]ledger.Event{{Seq: 2, RunID: "a"}, {Seq: 3, RunID: "a"}}),
			"AddSteps":    tx.AddSteps([]ledger.Step{{RunID: "a"}, {RunID: "a", Seq: 1}}),
			"AddDecision": tx.AddDecision(ledger.Decision{Seq: 2}),
			"PutBlob":     tx.PutBlob(ledger.Blob{Digest: "d"}),
			"AddRequest":  tx.AddRequest(ledger.Request{RunID: "b"}),
			"PutRequest":  tx.PutRequest(ledger.Request{RunID: "b"}),
			"PutToken":    tx.PutToken(ledger.Token{ID: "t"}),
			"Prune":       tx.Prune(1, nil),
		} {
			if !errors.Is(err, ErrMoved) {
				t.Errorf("%s = %v, want ErrMoved", name, err)
			}
		}
		return nil
	})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("Update = %v, want ErrMoved", err)
	}
	if err := os.Rename(s.path+".away", s.path); err != nil {
		t.Fatal(err)
	}
	did(t, s, put("b", "allowed"))
	if n := events(t, s); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// TestTailOfARunThatIsPutTwice: the last commit of a run stays cached until the file has it.
func TestTailOfARunThatIsPutTwice(t *testing.T) {
	s := keeping(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, status := range []string{"first", "second"} {
		did(t, s, func(tx ledger.Tx) error {
			return tx.PutRequest(ledger.Request{RunID: "a", Status: ledger.Status(status), Seq: 1, Ended: "e"})
		})
	}
	s.writing <- struct{}{}
	first := s.tail.pending[:1]
	err := s.transact(t.Context(), func(x ledger.Tx) error { return replay(x, first) })
	s.tail.forget(first)
	<-s.writing
	if err != nil {
		t.Fatal(err)
	}
	did(t, s, func(tx ledger.Tx) error {
		q, err := tx.Request("a")
		if q.Status != "second" {
			t.Errorf("it stands as it was put %s", q.Status)
		}
		return err
	})
}

// TestTailGlance: each read of a glance sees all commits from before it began, of any process, in tail or file.
func TestTailGlance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := keeping(t, path)
	other, err := Open(path, Options{Tail: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	leaves(t, other)
	did(t, s, put("a", "at-first"))
	holds(t, s)
	stands := func(r ledger.Reader, want string) {
		t.Helper()
		if q, err := r.Request("a"); err != nil || string(q.Status) != want {
			t.Errorf("Request = %q, %v, want %q", q.Status, err, want)
		}
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil || string(q.Status) != want {
				t.Errorf("Requests: %q, %v, want %q", q.Status, err, want)
			}
		}
		last, err := r.Last()
		if end, endErr := r.End(); err != nil || endErr != nil || last.Seq != end.Seq {
			t.Errorf("Last = %d, %v, and End = %d, %v", last.Seq, err, end.Seq, endErr)
		}
	}
	err = s.Glance(t.Context(), func(r ledger.Reader) error {
		stands(r, "at-first")
		did(t, s, put("a", "by-itself"))
		stands(r, "by-itself")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Glance(t.Context(), func(r ledger.Reader) error {
		leaves(t, s)
		did(t, other, put("a", "by-another"))
		stands(r, "by-another")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	leaves(t, other)
	did(t, s, put("a", "once-more"))
	holds(t, s)
	err = s.Glance(t.Context(), func(r ledger.Reader) error {
		stands(r, "once-more") // it goes on in the file from here, of a ledger that this process holds, and then does not
		leaves(t, s)
		did(t, other, put("a", "by-another-once-more"))
		stands(r, "by-another-once-more")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept := other.Stats().Kept; kept != 2 {
		t.Errorf("the other one has kept %d commits, want both", kept)
	}
}

// TestTailThatCannotBeOpened: it says so, and nothing of that stays when it can be.
func TestTailThatCannotBeOpened(t *testing.T) {
	s := fresh(t)
	did(t, s, put("a", "allowed"))
	reader, err := OpenReadOnly(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	none := func(ledger.Reader) error { return nil }
	for _, mode := range []os.FileMode{0o622, 0o600} {
		if err := os.Chmod(s.path+tail.Suffix, mode); err != nil {
			t.Fatal(err)
		}
		if err := reader.View(t.Context(), none); errors.Is(err, tail.ErrUnsafe) != (mode == 0o622) {
			t.Errorf("%s: View = %v", mode, err)
		}
	}
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	if ok, err := s.tail.file.TryExclusive(); !ok || err != nil { // a reader that does not read has no lock
		t.Errorf("the exclusive lock: %t, %v", ok, err)
	}
}

// TestTailClosed lets stores be closed while others read and write in them: nobody hangs, and what was acknowledged is there.
func TestTailClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var acknowledged atomic.Int64
	for i := range 12 {
		s, err := Open(path, Options{Tail: i%3 != 0})
		if i%4 == 3 {
			if err = errors.Join(err, s.Close()); err == nil {
				s, err = OpenReadOnly(path)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var begun sync.WaitGroup
		for k := range 6 {
			begun.Add(1)
			all.Go(func() {
				once := sync.OnceFunc(begun.Done)
				for {
					var err error
					switch {
					case k < 2 && !s.readOnly:
						if err = s.Update(t.Context(), func(tx ledger.Tx) error { return next(tx, "a") }); err == nil {
							acknowledged.Add(1)
						}
					case k%2 == 0:
						err = s.View(t.Context(), func(r ledger.Reader) error { _, err := r.Delivered("hook"); return err })
					default:
						err = s.Glance(t.Context(), func(r ledger.Reader) error { _, err := r.Token("t"); return err })
					}
					once()
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil && !errors.Is(err, ledger.ErrNotFound) {
						t.Error(err)
						return
					}
				}
			})
		}
		begun.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
	s := keeping(t, path)
	if got, want := int64(events(t, s)), acknowledged.Load(); got != want {
		t.Errorf("%d events, and %d were acknowledged", got, want)
	}
}

// A crowd is several stores of one ledger, in which everybody does everything at once. Each update that succeeds adds one event.
type crowd struct {
	t       *testing.T
	path    string
	acks    atomic.Int64
	name    sync.Mutex   // of who changes the token
	version atomic.Int64 // of the token, as it was acknowledged
}

// A runTold is a run that was put, and of which that was acknowledged.
type runTold struct {
	id  string
	seq int64
}

// store opens one of the stores, for one turn.
func (c *crowd) store(i int) *Store {
	open := func() (*Store, error) { return Open(c.path, Options{Tail: i%4 < 2}) }
	if i%4 == 3 {
		open = func() (*Store, error) { return OpenReadOnly(c.path) }
	}
	s, err := open()
	if err != nil {
		c.t.Error(err)
	}
	return s
}

// looks fails unless what was acknowledged before is seen.
func (c *crowd) looks(s *Store, look func(context.Context, func(ledger.Reader) error) error, told runTold) {
	version, acks := c.version.Load(), c.acks.Load()
	err := look(c.t.Context(), func(r ledger.Reader) error {
		token, err := r.Token("t")
		if err != nil {
			return err
		}
		if token.Seq < version {
			c.t.Errorf("the token is seen as it was at %d; at %d it was changed", token.Seq, version)
		}
		end, err := r.End()
		if err != nil {
			return err
		}
		if end.Seq < acks {
			c.t.Errorf("the ledger is seen to end with %d; %d events were acknowledged", end.Seq, acks)
		}
		if told.id == "" {
			return nil
		}
		seq, err := r.Reached(told.id)
		if err != nil || seq < told.seq {
			c.t.Errorf("the run stands at %d, %v; at %d it was acknowledged", seq, err, told.seq)
		}
		return nil
	})
	if err != nil {
		c.t.Errorf("tail %t, read only %t: %v", s.tail.wanted, s.readOnly, err)
	}
}

var errWanted = errors.New("wanted")

// updates does one of the things that are done, and returns what was acknowledged.
func (c *crowd) updates(s *Store, random *rand.Rand, id string) (told runTold) {
	ctx, end := context.WithCancel(c.t.Context())
	defer end()
	does, fails := random.IntN(12), false
	if does == 0 {
		c.name.Lock()
		defer c.name.Unlock()
	}
	defer func() {
		if v := recover(); v != nil && v != errWanted {
			panic(v)
		}
	}()
	var seq int64
	err := s.Update(ctx, func(tx ledger.Tx) error {
		last, err := tx.End()
		if err != nil {
			return err
		}
		seq = last.Seq + 1
		if err := next(tx, id); err != nil {
			return err
		}
		q := ledger.Request{RunID: id, Kind: "agent", Seq: seq}
		if does >= 6 {
			q.Ended = "e"
		}
		fails = does >= 2 && does <= 4
		switch does {
		case 0:
			return tx.PutToken(ledger.Token{ID: "t", Seq: seq})
		case 1:
			q.Binding = "b"
		case 2:
			panic(errWanted)
		case 3:
			end()
		case 4:
			return errors.Join(errWanted, tx.SetDelivered("hook", seq))
		case 5:
			if seq > 50 {
				return tx.Prune(seq-40, nil)
			}
		}
		return errors.Join(tx.AddDecision(ledger.Decision{Seq: seq}), tx.AddSteps([]ledger.Step{{RunID: id}}), tx.AddRequest(q))
	})
	switch {
	case (err != nil) != fails:
		c.t.Errorf("%d: tail %t: %v", does, s.tail.wanted, err)
		return told
	case fails:
		return told
	}
	c.acks.Add(1)
	if does == 0 {
		c.version.Store(seq)
	}
	if does == 1 || does > 5 {
		told = runTold{id, seq}
	}
	return told
}

// TestTailOfMany lets stores with a tail, without one, and that only read be opened, used by many, and closed, at the same time.
func TestTailOfMany(t *testing.T) {
	const hands, turns, each = 3, 3, 12
	c := &crowd{t: t, path: filepath.Join(t.TempDir(), "ledger.db")}
	first := keeping(t, c.path)
	did(t, first, func(tx ledger.Tx) error { return tx.PutToken(ledger.Token{ID: "t"}) })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.acks.Add(1)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			for turn := range turns {
				s := c.store(i)
				if s == nil {
					return
				}
				var some sync.WaitGroup
				for hand := range hands {
					some.Go(func() {
						random := rand.New(rand.NewPCG(uint64(i), uint64(100*turn+hand)))
						var told runTold
						for n := range each {
							if !s.readOnly && random.IntN(3) > 0 {
								told = c.updates(s, random, fmt.Sprintf("%d-%d-%d-%02d", turn, i, hand, n))
							}
							if random.IntN(2) == 0 {
								c.looks(s, s.View, told)
							}
							c.looks(s, s.Glance, told)
						}
					})
				}
				some.Wait()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := keeping(t, c.path)
	err := s.View(t.Context(), func(r ledger.Reader) error {
		all := seen(t, r.Events(0))
		for i, e := range all {
			if e.Seq != all[0].Seq+int64(i) {
				t.Errorf("event %d stands behind %d others, the first of which is %d", e.Seq, i, all[0].Seq)
			}
		}
		if last := all[len(all)-1].Seq; last != c.acks.Load() {
			t.Errorf("the ledger ends with %d; %d events were acknowledged", last, c.acks.Load())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
