package session

import (
	"fmt"
	"slices"
	"testing"

	"pgfsm/internal/test/check"
)

var ann, bob = Identity{Name: "ann"}, Identity{Name: "bob"}

func open(t *testing.T, table *Table, client Identity) *Session {
	t.Helper()
	s, err := table.Open(client, "", "2025-11-25")
	check.NoError(t, err)
	t.Cleanup(s.End)
	return s
}

// unread are the outgoing messages of a session that nobody has read. It leaves the session without a reader.
func unread(s *Session) []Event {
	r := s.Listen()
	defer r.Close()
	events, _ := r.Read()
	return events
}

func TestOutgoingMessagesAreBounded(t *testing.T) {
	t.Run("without-a-reader-the-oldest-is-dropped", func(t *testing.T) {
		s := open(t, NewTable(Limits{}), ann)
		for i := range maxEvents + 1 {
			_ = s.Send(fmt.Append(nil, i))
		}
		if got := unread(s); len(got) != maxEvents || string(got[0].Data) != "1" || s.Context.Err() != nil {
			t.Errorf("%d messages are left, the first is %s, and the session ended: %v; want %d, 1 and that it goes on",
				len(got), got[0].Data, s.Context.Err(), maxEvents)
		}
	})
	for _, tt := range []struct {
		name     string
		messages []int // their sizes, as many as fit
	}{
		{"many", slices.Repeat([]int{1}, maxEvents)},
		{"large", []int{maxEventBytes - 1 - 3*eventOverhead, 1}},
		{"one-that-is-too-large", []int{maxEventBytes + 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, NewTable(Limits{}), ann)
			s.Listen()
			for _, size := range tt.messages {
				_ = s.Send(make([]byte, size))
			}
			if s.Context.Err() != nil {
				t.Fatal("the session ended at the limit")
			}
			_ = s.Send([]byte("xx"))
			if s.Context.Err() == nil {
				t.Error("the session goes on past the limit, although its client does not read")
			}
		})
	}
	t.Run("read-messages-make-room", func(t *testing.T) {
		s := open(t, NewTable(Limits{}), ann)
		r := s.Listen()
		for range 3 * maxEvents {
			_ = s.Send([]byte("x"))
			if got, _ := r.Read(); len(got) != 1 || s.Context.Err() != nil {
				t.Fatalf("%d messages are unread, and the session ended: %v, want 1 and that it goes on", len(got), s.Context.Err())
			}
		}
	})
}

func TestLoggedEventsAreBounded(t *testing.T) {
	s := open(t, NewTable(Limits{}), ann)
	l := &s.Answers
	add := func(r *Reader, data string, last bool) { l.Add(r, EventMessage, []byte(data), last) }
	add(l.Begin(), "answer", true)
	answer := l.Begin()
	for range maxEvents - 1 {
		add(answer, "x", false)
	}
	if s.Resume("1_0") == nil {
		t.Error("an event is gone at the limit")
	}
	add(answer, "x", false)
	if s.Resume("1_0") != nil {
		t.Error("a closed stream without events is known")
	}
	add(answer, "x", false)
	if events, more := answer.Read(); len(events) > 0 || more {
		t.Error("nothing is missing past the limit")
	}
	if events, more := s.Resume("2_0").Read(); !more || len(events) != maxEvents {
		t.Errorf("%d events are kept, more follow: %t, want %d and that more follow", len(events), more, maxEvents)
	}
	add(answer, string(make([]byte, maxEventBytes)), true)
	if len(l.events) != 1 || l.bytes != maxEventBytes+eventOverhead {
		t.Errorf("too large an event leaves %d events and %d bytes, want itself", len(l.events), l.bytes)
	}
}

// TestSessionsShareTheBudget: a session past the limit keeps less, and the others keep what they have.
func TestSessionsShareTheBudget(t *testing.T) {
	message := make([]byte, 2*Small-eventOverhead) // takes Small
	for _, kind := range []string{"answers", "outgoing"} {
		t.Run(kind, func(t *testing.T) {
			table := NewTable(Limits{MemoryBytes: 4 * Small}) // two such messages of one client
			sessions := []*Session{open(t, table, ann), open(t, table, ann), open(t, table, ann), open(t, table, bob)}
			keeps := func(s *Session) bool {
				if kind == "outgoing" {
					_ = s.Send(message)
					return len(unread(s)) == 1
				}
				r := s.Answers.Begin()
				s.Answers.Add(r, EventMessage, message, true)
				events, _ := r.Read()
				return len(events) == 1
			}
			var got []bool
			for _, s := range sessions {
				got = append(got, keeps(s))
			}
			if want := []bool{true, true, false, true}; !slices.Equal(got, want) {
				t.Errorf("the sessions keep a large message: %t, want %t", got, want)
			}
			if sessions[0].End(); keeps(sessions[0]) || !keeps(sessions[2]) {
				t.Error("the memory of an ended session is not free, or the session keeps more")
			}
			for _, s := range sessions {
				s.End()
			}
			if n := table.Memory.Size(); n != 0 {
				t.Errorf("%d bytes are not given back", n)
			}
		})
	}
}

// A cut connection says that it was closed.
type cutConn chan struct{}

func (c cutConn) Cut() { close(c) }

// TestSlowWritesMakeRoom: a write is never refused. The client that holds most loses the connection that has written longest.
func TestSlowWritesMakeRoom(t *testing.T) {
	type write struct {
		client Identity
		size   int
	}
	for _, tt := range []struct {
		name   string
		taken  map[Identity]int // by requests
		writes []write          // of one connection each
		cut    int              // number of the write whose connection is closed by the last one; -1: none
	}{
		{"at-the-limit-of-one", nil, []write{{ann, 2}, {ann, 2}}, -1},
		{"one-past-that-of-one", nil, []write{{ann, 2}, {ann, 3}}, 0},
		{"with-its-requests", map[Identity]int{ann: 2}, []write{{ann, 2}, {ann, 1}}, 0},
		{"larger-than-all", nil, []write{{ann, 9}}, -1},
		{"at-the-limit-of-all", nil, []write{{ann, 4}, {bob, 4}}, -1},
		{"one-past-that-of-all", nil, []write{{ann, 2}, {bob, 3}, {bob, 1}, {Identity{Name: "eve"}, 3}}, 1},
		{"requests-of-others", map[Identity]int{ann: 4, bob: 4}, []write{{Identity{Name: "eve"}, 2}}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBudget(8)
			for client, size := range tt.taken { // in any order: they are added
				b.Take(client, size)
			}
			var conns []cutConn
			var writes []*Write
			for _, w := range tt.writes {
				conns = append(conns, make(cutConn))
				writes = append(writes, b.StartWrite(w.client, w.size, conns[len(conns)-1]))
			}
			if tt.cut >= 0 {
				<-conns[tt.cut]
			}
			if want := len(writes) - min(1, tt.cut+1); len(b.writes) != want {
				t.Errorf("%d writes go on, want %d", len(b.writes), want)
			}
			for _, w := range writes {
				w.End()
			}
			for client, size := range tt.taken { // in any order
				b.Return(client, size)
			}
			if b.bytes.taken != 0 || len(b.bytes.byClient) != 0 {
				t.Errorf("%d bytes are not given back", b.bytes.taken)
			}
		})
	}
}
