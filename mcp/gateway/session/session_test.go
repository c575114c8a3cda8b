package session

import (
	"fmt"
	"slices"
	"testing"
)

var ann, bob = Identity{Name: "ann"}, Identity{Name: "bob"}

func open(t *testing.T, table *Table, client Identity) *Session {
	t.Helper()
	s, err := table.Open(client, "", "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.End)
	return s
}

func TestOutgoingMessagesAreBounded(t *testing.T) {
	t.Run("without-a-reader-the-oldest-is-dropped", func(t *testing.T) {
		s := open(t, NewTable(Limits{}), ann)
		for i := range maxQueued + 1 {
			_ = s.Send(fmt.Append(nil, i))
		}
		got := s.Outgoing.Take()
		if len(got) != maxQueued || string(got[0]) != "1" || s.Context.Err() != nil {
			t.Errorf("%d are left, the first is %s; the session: %v", len(got), got[0], s.Context.Err())
		}
	})
	t.Run("a-client-that-does-not-read-loses-the-session", func(t *testing.T) {
		s := open(t, NewTable(Limits{}), ann)
		s.Outgoing.Attach(false)
		for i := range maxQueued {
			_ = s.Send(fmt.Append(nil, i))
		}
		if s.Context.Err() != nil {
			t.Fatal("the session ended at the limit")
		}
		_ = s.Send([]byte("x"))
		if s.Context.Err() == nil {
			t.Error("the session goes on past the limit")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := open(t, NewTable(Limits{}), ann)
		s.Outgoing.Attach(false)
		_ = s.Send(make([]byte, maxQueuedBytes-1))
		_ = s.Send([]byte("x"))
		if s.Context.Err() != nil {
			t.Fatal("the session ended at the limit")
		}
		_ = s.Send([]byte("x"))
		if s.Context.Err() == nil {
			t.Error("the session goes on past the limit")
		}
	})
}

func TestLoggedEventsAreBounded(t *testing.T) {
	l := &open(t, NewTable(Limits{}), ann).Events
	add := func(on *Stream, data string, last bool) { l.Add(on, nil, "message", []byte(data), last) }
	closed := l.Begin(nil)
	add(closed, "answer", true)
	on := l.Begin(nil)
	for range maxEvents - 1 {
		add(on, "x", false)
	}
	if found, _ := l.Find("1_0"); found != closed {
		t.Error("an event is gone at the limit")
	}
	add(on, "x", false)
	if found, _ := l.Find("1_0"); found != nil {
		t.Error("a closed stream without events is known")
	}
	if events, _, complete := l.After(on, 0); !complete || len(events) != maxEvents {
		t.Errorf("%d are kept", len(events))
	}
	add(on, "x", false)
	if _, _, complete := l.After(on, 0); complete {
		t.Error("nothing is missing past the limit")
	}
	if events, _, complete := l.After(on, 1); !complete || len(events) != maxEvents {
		t.Errorf("%d are kept", len(events))
	}
	add(on, string(make([]byte, maxEventBytes)), true)
	if len(l.events) != 0 || l.bytes != 0 || len(l.streams) != 1 {
		t.Errorf("too large an event leaves %d events, %d bytes, %d streams", len(l.events), l.bytes, len(l.streams))
	}
}

func TestReservation(t *testing.T) {
	b := NewBudget(4 * Small)
	r := reservation{budget: b, client: ann}
	for _, step := range []struct {
		name  string
		size  int
		want  bool
		taken int
	}{
		{"small", Small, true, 0}, {"one-past-small", Small + 1, true, Small}, {"within-a-step", 2 * Small, true, Small},
		{"one-past-a-step", 2*Small + 1, true, 2 * Small}, {"less", 1, true, 2 * Small}, {"at-the-limit-of-one", 3 * Small, true, 2 * Small},
		{"one-past-the-limit-of-one", 3*Small + 1, false, 2 * Small},
	} {
		if got := r.grow(step.size); got != step.want || b.taken != step.taken {
			t.Errorf("%s: %t, and %d are taken", step.name, got, b.taken)
		}
	}
	if r.release(); b.taken != 0 || len(b.byIdentity) != 0 {
		t.Errorf("%d are not given back", b.taken)
	}
	if r.closed = true; r.grow(Small+1) || !r.grow(Small) {
		t.Error("a closed reservation does not grow to Small and no further")
	}
}

// All sessions share a budget: a session past the limit keeps less, and the others keep what they have.
func TestSessionsShareBudgets(t *testing.T) {
	three := func(t *testing.T) []*Session { // one session of each client may keep more than a small message
		table := NewTable(Limits{AnswersBytes: 4 * Small})
		all := []*Session{open(t, table, ann), open(t, table, ann), open(t, table, bob)}
		t.Cleanup(func() {
			for _, s := range all {
				s.End()
			}
			if table.replay.taken != 0 || table.queued.taken != 0 {
				t.Errorf("%d and %d bytes are not given back", table.replay.taken, table.queued.taken)
			}
		})
		return all
	}
	message := make([]byte, Small+1)
	t.Run("events", func(t *testing.T) {
		keeps := func(s *Session) bool {
			on := s.Events.Begin(nil)
			s.Events.Add(on, nil, "message", message, true)
			_, _, complete := s.Events.After(on, 0)
			return complete
		}
		s := three(t)
		if !keeps(s[0]) || keeps(s[1]) || !keeps(s[2]) {
			t.Error("not the first session of each client keeps a large event")
		}
		if s[0].End(); keeps(s[0]) || !keeps(s[1]) {
			t.Error("the memory of an ended session is not free, or the session keeps more")
		}
	})
	t.Run("outgoing-without-a-reader", func(t *testing.T) {
		queued := func(s *Session) int {
			_ = s.Send(message[:Small])
			_ = s.Send(message[:1])
			return len(s.Outgoing.messages)
		}
		s := three(t)
		if got := []int{queued(s[0]), queued(s[1]), queued(s[2])}; !slices.Equal(got, []int{2, 1, 2}) || s[1].Context.Err() != nil {
			t.Errorf("%d are queued", got)
		}
		if _ = s[1].Send(message); len(s[1].Outgoing.messages) != 0 || s[1].Context.Err() != nil {
			t.Error("a message without room is kept, or ended the session")
		}
		s[0].Outgoing.Take()
		if _ = s[1].Send(message); len(s[1].Outgoing.messages) != 1 {
			t.Error("the memory of messages that were read is not free")
		}
	})
	t.Run("outgoing-with-a-reader-that-does-not-read", func(t *testing.T) {
		all := three(t)
		for _, s := range all {
			s.Outgoing.Attach(false)
			_ = s.Send(message)
		}
		if all[0].Context.Err() != nil || all[1].Context.Err() == nil || all[2].Context.Err() != nil {
			t.Error("not the session past the limit ended")
		}
		if all[0].End(); all[0].Outgoing.Put(message) {
			t.Error("an ended session queues a large message")
		}
	})
}

func TestMessageTooLargeToQueue(t *testing.T) {
	for size, want := range map[int]int{maxQueuedBytes: 1, maxQueuedBytes + 1: 0} { // in any order
		q := &open(t, NewTable(Limits{}), ann).Outgoing
		if !q.Put(make([]byte, size)) || len(q.Take()) != want {
			t.Errorf("of a message of %d bytes %d are queued, want %d", size, 1-want, want)
		}
	}
}
