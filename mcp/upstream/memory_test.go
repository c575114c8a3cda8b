package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMemoryOfLargeMessages: readers wait when a bound is reached, but one goes on, so that some message is complete in the end.
func TestMemoryOfLargeMessages(t *testing.T) {
	const room = memoryPerByte * memoryStep // of one step
	u := &Upstreams{common: &common{memory: newMemoryBudget(4 * room)}}
	ann, other, bob, third := u.Memory("ann"), u.Memory("ann"), u.Memory("bob"), u.Memory("bob")
	waits := make(chan struct{}, 1)
	hold := func(m *Memory, steps int) <-chan error {
		done := make(chan error, 1)
		go func() {
			done <- m.hold(t.Context(), steps*memoryStep+1, func() func() {
				waits <- struct{}{}
				return func() {}
			})
		}()
		return done
	}
	passes := func(what string, done <-chan error) {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-waits:
			t.Fatalf("%s waits", what)
		}
	}
	held := func(what string, done <-chan error) {
		t.Helper()
		select {
		case err := <-done:
			t.Fatalf("%s does not wait: %v", what, err)
		case <-waits:
		}
	}
	passes("a small message", hold(ann, 0))
	passes("half for one", hold(ann, 2))
	passes("one more, which may exceed the bound", hold(other, 1))
	passes("another owner", hold(bob, 1))
	passes("the one that exceeds goes on", hold(other, 3))
	waiting := hold(third, 2)
	held("a second one past the bound", waiting)
	ann.Release()
	more := hold(bob, 2) // third is bob's, too
	held("still", more)
	other.Release()
	if err := <-waiting; err != nil { // it fits beside bob's message, or exceeds the bound
		t.Error(err)
	}
	third.Release()
	if err := <-more; err != nil { // if third was first, it waited for third's end
		t.Error(err)
	}
	bob.Release()
	third.adopt(bob)                      // nobody waits for this message any more
	u.Memory("carol").adopt(u.Memory("")) // a small message
	reader, answer := u.Memory(""), u.Memory("carol")
	passes("a message of a shared session", hold(reader, 1))
	answer.adopt(reader)
	reader.Release()
	answer.Release()
	if b := u.memory; b.taken != 0 || len(b.byOwner) != 0 || b.exceeds != nil {
		t.Errorf("%d bytes of %v are not given back", b.taken, b.byOwner)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	full, late := u.Memory("ann"), u.Memory("ann")
	passes("more than there is", hold(full, 9))
	if err := late.hold(ended, 9*memoryStep, func() func() { return func() {} }); err == nil || late.size != 0 {
		t.Errorf("the end of the request: %v, %d bytes", err, late.size)
	}
}

// TestLargeMessagesWithoutAnEnd: a server that sends only the beginning of a large message must not keep its memory.
func TestLargeMessagesWithoutAnEnd(t *testing.T) {
	s := self(t, "honest")
	s.Timeout = 50 * time.Millisecond
	u := upstreams(t, Limits{}, s)
	u.memory = newMemoryBudget(2 * memoryPerByte * memoryStep)
	begin := func() (*Link, holder) {
		l := newLink(u, u.byName[s.Name], Peer{Owner: "ann"})
		d := &duplex{l: l}
		return l, d.holder()
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
	if err := blocking.hold(t.Context(), 9*memoryStep, pauseNone); err != nil {
		t.Fatal(err)
	}
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
		return on("tools/call", func(w spoken) []string {
			return []string{result(w.id, `{"content":[],"x":"`+strings.Repeat("x", 200<<10)+`"}`)}
		})
	}
}

// TestResultsWaitForMemory: a large result is read when the one before it was released, and the call's time stands still until then.
func TestResultsWaitForMemory(t *testing.T) {
	judge := func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		u.memory = newMemoryBudget(1) // one message at a time
		l := linked(t, u, s.Name, Peer{Protocol: older})
		call := func(m *Memory) (r Returned) {
			c := asCall(t, l, `{}`)
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
