package upstream

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/internal/test/check"
)

// TestMemoryOfLargeMessages: readers wait when a bound is reached, but one goes on, so that some message is complete in the end.
func TestMemoryOfLargeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = memoryPerByte * memoryStep // of one step
		u := &Upstreams{common: &common{memory: newMemoryBudget(4 * room)}}
		hold := func(what string, m *Memory, steps int, waits bool) *atomic.Bool {
			t.Helper()
			var passed atomic.Bool
			go func() {
				if err := m.awaitRoom(t.Context(), steps*memoryStep+1, pauseNone); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				passed.Store(true)
			}()
			synctest.Wait()
			if passed.Load() == waits {
				t.Errorf("%s waits: %t, want %t", what, !waits, waits)
			}
			return &passed
		}
		ann, other, bob, third := u.Memory("ann"), u.Memory("ann"), u.Memory("bob"), u.Memory("carol")
		hold("a small message", ann, 0, false)
		hold("half for one", ann, 2, false)
		hold("one more, which may exceed the bound", other, 1, false)
		hold("another owner", bob, 1, false)
		hold("the one that exceeds goes on", other, 3, false)
		waiting := hold("a second one past the bound", third, 2, true)
		ann.Release()
		synctest.Wait()
		if waiting.Load() {
			t.Error("there is room while a message exceeds the bound")
		}
		other.Release()
		synctest.Wait()
		if !waiting.Load() {
			t.Error("there is no room after the release")
		}
		third.Release()
		bob.Release()
		third.adopt(bob)                      // nobody waits for this message any more
		u.Memory("carol").adopt(u.Memory("")) // a small message
		reader, answer := u.Memory(""), u.Memory("carol")
		hold("a message of a shared session", reader, 1, false)
		answer.adopt(reader)
		reader.Release()
		answer.Release()
		if b := u.memory; b.taken != 0 || len(b.byOwner) != 0 || b.exceeds != nil {
			t.Errorf("%d bytes of %v are not given back", b.taken, b.byOwner)
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		late := u.Memory("ann")
		hold("more than there is", u.Memory("ann"), 9, false)
		if err := late.awaitRoom(ended, 9*memoryStep, pauseNone); err == nil || late.size != 0 {
			t.Errorf("the end of the request: %v, %d bytes", err, late.size)
		}
	})
}

// TestLargeMessagesWithoutAnEnd: a server that sends only the beginning of a large message must not keep its memory.
func TestLargeMessagesWithoutAnEnd(t *testing.T) {
	s := childServer(t, "honest")
	s.Timeout = 50 * time.Millisecond
	u := upstreams(t, Limits{}, s)
	u.memory = newMemoryBudget(2 * memoryPerByte * memoryStep)
	begin := func() (*Link, holder) {
		l := newLink(u, u.byName[s.Name], Peer{Owner: "ann"})
		d := &duplex{l: l}
		return l, d.messageHolder()
	}
	ended := func(l *Link) bool {
		select {
		case <-l.Done():
			return true
		case <-time.After(4 * s.Timeout):
			return false
		}
	}
	whole, hold := begin()
	if err := errors.Join(hold(0), hold(memoryStep+1), hold(complete)); err != nil || ended(whole) {
		t.Errorf("a whole message ended the link: %v, %v", err, whole.Err())
	}
	if u.memory.taken == 0 {
		t.Error("a whole message has no memory")
	}
	if err := hold(0); err != nil || u.memory.taken > 0 {
		t.Errorf("the next message: %v, and %d bytes are reserved", err, u.memory.taken)
	}
	blocking := u.Memory("bob")
	check.NoError(t, blocking.awaitRoom(t.Context(), 9*memoryStep, pauseNone))
	waiting, hold := begin()
	got := make(chan error, 1)
	go func() { got <- hold(memoryStep + 1) }()
	if ended(waiting) {
		t.Errorf("the time that a message waits for memory counts: %v", waiting.Err())
	}
	blocking.Release()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if !ended(waiting) {
		t.Error("the beginning of a message keeps its memory for ever")
	} else if f := waiting.fault(); f.code != CodeTimeout {
		t.Errorf("the link ended with %s", f)
	}
}

func init() {
	roles["200-KiB"] = func() script {
		return answering("tools/call", func(w spoken) []string {
			return []string{result(w.id, `{"content":[],"x":"`+strings.Repeat("x", 200<<10)+`"}`)}
		})
	}
}

// TestResultsWaitForMemory: a large result is read when the one before it was released, and the call's time stands still until then.
func TestResultsWaitForMemory(t *testing.T) {
	judge := func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		u.memory = newMemoryBudget(1) // one message at a time
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		call := func(m *Memory) (r Returned) {
			c := callByListing(t, l, `{}`)
			c.Memory = m
			return l.Call(t.Context(), c, nil)
		}
		first, second := u.Memory("ann"), u.Memory("ann")
		defer second.Release()
		if r := call(first); r.Effect != EffectDone || len(r.Result) < 200<<10 {
			t.Fatalf("Call() = %.100s, %+v", r.Result, r.Code)
		}
		answered := make(chan Returned, 1)
		go func() { answered <- call(second) }()
		select {
		case r := <-answered:
			t.Fatalf("the second call did not wait: %s %s", r.Code, r.Reason)
		case <-time.After(100 * time.Millisecond): // long enough to see a call that does not wait
		}
		first.Release()
		if r := <-answered; r.Effect != EffectDone || len(r.Result) < 200<<10 {
			t.Errorf("Call() = %.100s, %+v", r.Result, r.Code)
		}
	}
	overEach(t, "200-KiB", judge)
}
