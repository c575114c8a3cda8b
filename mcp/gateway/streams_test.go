package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersAreJSONUntilSomethingIsSaid(t *testing.T) {
	stateless := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call"}
	for _, c := range []struct {
		name    string
		tool    string
		headers []string
		want    string // of the body
		kind    string
	}{
		{"at-once", "echo", nil, `{"jsonrpc":"2.0","id":5,"result":{"name":"echo",` + meta + `}}`, "application/json"},
		{"at-once-as-a-stream", "echo", []string{"Accept: text/event-stream"},
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"name\":\"echo\"," + meta + "}}\n\n", "text/event-stream"},
		{"at-once-as-a-stream-that-is-named-first", "echo", []string{"Accept: text/event-stream, application/json"},
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"name\":\"echo\"," + meta + "}}\n\n", "text/event-stream"},
		{"after-others", "say", nil, "event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"n\":0}}\n\n" +
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"n\":1}}\n\n" +
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"n\":2}}\n\n" +
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"name\":\"say\"," + meta + "}}\n\n", "text/event-stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			body := rpc("5", "tools/call", `{"name":"`+c.tool+`",`+meta+`}`)
			w := serve(g, come("POST", "/mcp", body, append(append(stateless, "Mcp-Name: "+c.tool), c.headers...)...))
			if diff := cmp.Diff(c.want, w.Body.String()); diff != "" || w.Code != 200 || w.Header().Get("Content-Type") != c.kind {
				t.Errorf("%d %s (-want +got):\n%s", w.Code, w.Header().Get("Content-Type"), diff)
			}
			if length := w.Header().Get("Content-Length"); (length != "") != (c.tool == "echo") {
				t.Errorf("Content-Length is %q", length)
			}
		})
	}
}

// An error of the stateless protocol has its HTTP status also for a client that would rather have streams, which have none.
func TestErrorsKeepTheirStatus(t *testing.T) {
	g, _ := scripted(t, nil)
	w := serve(g, come("POST", "/mcp", rpc("5", "unknown", `{`+meta+`}`), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: unknown",
		"Accept: text/event-stream, application/json"))
	if w.Code != 404 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
}

func TestEventsHoldAnyJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one-line", `{"a":1}`, "event: message\ndata: {\"a\":1}\n\n"},
		{"line-feeds", "{\n\n}", "event: message\ndata: {\ndata: \ndata: }\n\n"},
		{"carriage-returns", "{\r\n\r}", "event: message\ndata: {\ndata: \ndata: }\n\n"},
		{"at-the-end", "{}\n", "event: message\ndata: {}\ndata: \n\n"},
		{"colon-and-space", ": x", "event: message\ndata: : x\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, string(appendEvent(nil, eventMessage, "", []byte(c.in)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff("{  \"a\" }\n", string(appendLine(nil, []byte("{\r\n\"a\"\n}")))); diff != "" {
		t.Errorf("a line (-want +got):\n%s", diff)
	}
}

// A client of a session that loses its connection in the middle of a call asks for the rest of the answer, and gets it.
func TestLostStreamsAreTakenUpAgain(t *testing.T) {
	g, s := scripted(t, nil)
	g.pace.prime = time.Nanosecond
	at := onLoopback(t, g)
	session := "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)).Header.Get(headerSession)

	lost := do(t, at, "POST", "/mcp", rpc("1", "tools/call", `{"name":"wait"}`), session)
	q := within(t, "the call", s.entered)
	e := &eventReader{t: t, r: bufio.NewReader(lost.Body)}
	name, id, data, _ := e.next()
	if diff := cmp.Diff([]string{"prime", "1_0", ""}, []string{name, id, data}); diff != "" {
		t.Fatalf("the first event (-want +got):\n%s", diff)
	}
	if err := q.out.Send([]byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, id, data, _ = e.next(); id != "1_1" || data != `{"n":1}` {
		t.Fatalf("the second event is %s %s", id, data)
	}
	_ = lost.Body.Close()
	if err := q.out.Send([]byte(`{"n":2}`)); err != nil { // nobody is there, but somebody will be
		t.Fatal(err)
	}
	again := do(t, at, "GET", "/mcp", "", session, "Last-Event-ID: 1_1")
	e = &eventReader{t: t, r: bufio.NewReader(again.Body)}
	if _, id, data, _ = e.next(); id != "1_2" || data != `{"n":2}` {
		t.Fatalf("the third event is %s %s", id, data)
	}
	if err := q.out.Send([]byte(`{"n":3}`)); err != nil {
		t.Fatal(err)
	}
	if _, id, data, _ = e.next(); id != "1_3" || data != `{"n":3}` {
		t.Fatalf("the fourth event is %s %s", id, data)
	}
	s.free <- struct{}{}
	if _, id, data, _ = e.next(); id != "1_4" || data != `{"jsonrpc":"2.0","id":1,"result":{"name":"wait"}}` {
		t.Fatalf("the answer is %s %s", id, data)
	}
	if _, _, _, ok := e.next(); ok {
		t.Error("something came behind the answer")
	}
	// Once more, as a client does who lost the second connection too.
	e = &eventReader{t: t, r: bufio.NewReader(do(t, at, "GET", "/mcp", "", session, "Last-Event-ID: 1_3").Body)}
	if _, id, _, ok := e.next(); id != "1_4" || !ok {
		t.Errorf("the answer came not again: %s", id)
	}
	if err := q.out.Send([]byte(`{}`)); err == nil {
		t.Error("something was said after the answer")
	}
	for _, bad := range []string{"1_9", "2_0", "0_0", "x", "1", "_", "-1_0", "1_-1", "1_0_0", "99999999999999999999_0"} {
		if r := do(t, at, "GET", "/mcp", "", session, "Last-Event-ID: "+bad); r.StatusCode != 400 {
			t.Errorf("Last-Event-ID %s: %d", bad, r.StatusCode)
		}
	}
}

// A stateless client has no other way to say that it gave up.
func TestLostConnections(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	call := func(cancelled context.Context, body string, headers ...string) {
		r, err := http.NewRequestWithContext(cancelled, "POST", "http://"+at+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go call(ctx, rpc("1", "tools/call", `{"name":"wait",`+meta+`}`), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: wait")
	within(t, "the call", s.entered)
	cancel()
	if err := within(t, "the end of the call", s.ends); err != context.Canceled {
		t.Errorf("it ended with %v", err)
	}

	session := "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-06-18"}`)).Header.Get(headerSession)
	ctx, cancel = context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		call(ctx, rpc("1", "tools/call", `{"name":"wait"}`), session)
	}()
	q := within(t, "the call", s.entered)
	cancel()
	within(t, "the client's end of it", over)
	if err := q.session.ctx.Err(); err != nil {
		t.Errorf("the session ended with %v", err)
	}
	s.free <- struct{}{} // it is still there to take it
	if r := do(t, at, "DELETE", "/mcp", "", session); r.StatusCode != 204 {
		t.Errorf("DELETE: %d", r.StatusCode)
	}
	if q.session.ctx.Err() == nil {
		t.Error("the session goes on")
	}
}

// any is the session with an id, whosever it is.
func (t *sessions) any(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func TestTheStreamOutsideOfRequests(t *testing.T) {
	g, _ := scripted(t, nil)
	at := onLoopback(t, g)
	id := do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)).Header.Get(headerSession)
	session, s := "Mcp-Session-Id: "+id, g.sessions.any(id)
	s.push([]byte(`{"n":0}`)) // before anybody listens

	first := do(t, at, "GET", "/mcp", "", session)
	e := &eventReader{t: t, r: bufio.NewReader(first.Body)}
	if _, id, data, _ := e.next(); id != "0_0" || data != `{"n":0}` {
		t.Fatalf("the first event is %s %s", id, data)
	}
	s.push([]byte(`{"n":1}`))
	if _, id, data, _ := e.next(); id != "0_1" || data != `{"n":1}` {
		t.Fatalf("the second event is %s %s", id, data)
	}
	if r := do(t, at, "GET", "/mcp", "", session); r.StatusCode != 409 {
		t.Errorf("a second stream: %d", r.StatusCode)
	}
	// One who says where it was takes over, since its old connection may seem to be there although it is not.
	second := do(t, at, "GET", "/mcp", "", session, "Last-Event-ID: 0_0")
	again := &eventReader{t: t, r: bufio.NewReader(second.Body)}
	if _, id, data, _ := again.next(); id != "0_1" || data != `{"n":1}` {
		t.Fatalf("the second event came again as %s %s", id, data)
	}
	if _, _, _, ok := e.next(); ok {
		t.Error("the old connection went on")
	}
	s.push([]byte(`{"n":2}`))
	if _, id, data, _ := again.next(); id != "0_2" || data != `{"n":2}` {
		t.Fatalf("the third event is %s %s", id, data)
	}
	s.end()
	if _, _, _, ok := again.next(); ok {
		t.Error("the stream outlived its session")
	}
}

func TestUnreadMessagesAreBounded(t *testing.T) {
	open := func(t *testing.T) *session {
		g, _ := scripted(t, nil)
		s := g.sessions.any(begin(t, g, "/mcp", "2025-11-25"))
		t.Cleanup(s.end)
		return s
	}
	t.Run("the-oldest-gives-way-while-nobody-listens", func(t *testing.T) {
		s := open(t)
		for i := range maxUnread + 1 {
			s.push(fmt.Append(nil, i))
		}
		got := s.outside.take()
		if len(got) != maxUnread || string(got[0]) != "1" || s.ctx.Err() != nil {
			t.Errorf("%d are left, the first is %s; the session: %v", len(got), got[0], s.ctx.Err())
		}
	})
	t.Run("one-who-does-not-read-loses-the-session", func(t *testing.T) {
		s := open(t)
		s.outside.attach(false)
		for i := range maxUnread {
			s.push(fmt.Append(nil, i))
		}
		if s.ctx.Err() != nil {
			t.Fatal("the session ended at the limit")
		}
		s.push([]byte("x"))
		if s.ctx.Err() == nil {
			t.Error("the session goes on past the limit")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := open(t)
		s.outside.attach(false)
		s.push(make([]byte, maxUnreadBytes-1))
		s.push([]byte("x"))
		if s.ctx.Err() != nil {
			t.Fatal("the session ended at the limit")
		}
		s.push([]byte("x"))
		if s.ctx.Err() == nil {
			t.Error("the session goes on past the limit")
		}
	})
}

func TestKeptEventsAreBounded(t *testing.T) {
	var s trails
	s.init()
	done := s.begin()
	s.add(done, nil, eventMessage, []byte("answer"), true)
	on := s.begin()
	for range maxKept - 1 {
		s.add(on, nil, eventMessage, []byte("x"), false)
	}
	if at, _ := s.find("1_0"); at != done {
		t.Error("at the limit something is gone")
	}
	s.add(on, nil, eventMessage, []byte("x"), false)
	if at, _ := s.find("1_0"); at != nil {
		t.Error("a stream is known of which nothing is kept")
	}
	if frames, _, ok := s.after(on, 0); !ok || len(frames) != maxKept {
		t.Errorf("%d are kept", len(frames))
	}
	s.add(on, nil, eventMessage, []byte("x"), false)
	if _, _, ok := s.after(on, 0); ok {
		t.Error("one past the limit nothing is missing")
	}
	if frames, _, ok := s.after(on, 1); !ok || len(frames) != maxKept {
		t.Errorf("%d are kept", len(frames))
	}
	s.add(on, nil, eventMessage, make([]byte, maxKeptBytes), true)
	if len(s.events) != 0 || s.bytes != 0 || len(s.known) != 1 {
		t.Errorf("too large an event leaves %d events, %d bytes, %d streams", len(s.events), s.bytes, len(s.known))
	}
}

func TestSharesOfRoom(t *testing.T) {
	var room bodies
	room.init(4 * freely)
	s := share{of: &room, from: Identity{Name: "ann"}}
	for _, step := range []struct {
		name  string
		size  int
		want  bool
		taken int
	}{
		{"little", freely, true, 0}, {"one-past-little", freely + 1, true, freely}, {"within-a-step", 2 * freely, true, freely},
		{"one-past-a-step", 2*freely + 1, true, 2 * freely}, {"less", 1, true, 2 * freely}, {"at-the-limit-of-one", 3 * freely, true, 2 * freely},
		{"one-past-the-limit-of-one", 3*freely + 1, false, 2 * freely},
	} {
		if got := s.holds(step.size); got != step.want || room.taken != step.taken {
			t.Errorf("%s: %t, and %d are taken", step.name, got, room.taken)
		}
	}
	if s.back(); room.taken != 0 || len(room.per) != 0 {
		t.Errorf("%d are not given back", room.taken)
	}
	if s.over = true; s.holds(freely+1) || !s.holds(freely) {
		t.Error("one that is over does not hold a little and no more")
	}
	if !new(share).holds(100 * freely) {
		t.Error("there is a limit where there is none")
	}
}

// What sessions keep is bounded together, too: one past the limit keeps less, and nobody else does.
func TestWhatSessionsHoldIsBoundedTogether(t *testing.T) {
	open := func(t *testing.T) []*session { // two of ann's, and bob's; one of a client's may have more than a little
		g, _ := scripted(t, func(o *Options) { o.Limits.AnswersBytes = 4 * freely })
		var all []*session
		for _, who := range []string{"ann", "ann", "bob"} {
			s := g.sessions.any(begin(t, g, "/mcp", "2025-11-25", "Authorization: Bearer token-"+who))
			all = append(all, s)
		}
		t.Cleanup(func() {
			for _, s := range all {
				s.end()
			}
			if g.kept.taken != 0 || g.unread.taken != 0 {
				t.Errorf("%d and %d bytes are not given back", g.kept.taken, g.unread.taken)
			}
		})
		return all
	}
	message := make([]byte, freely+1)
	t.Run("events", func(t *testing.T) {
		keeps := func(s *session) bool {
			on := s.trails.begin()
			s.trails.add(on, nil, eventMessage, message, true)
			_, _, ok := s.trails.after(on, 0)
			return ok
		}
		s := open(t)
		if !keeps(s[0]) || keeps(s[1]) || !keeps(s[2]) {
			t.Error("not the first of each client keeps more than a little")
		}
		if s[0].end(); keeps(s[0]) || !keeps(s[1]) {
			t.Error("what a session kept that is over has no room again, or it keeps more")
		}
	})
	t.Run("unread-while-nobody-listens", func(t *testing.T) {
		waits := func(s *session) int {
			s.push(message[:freely])
			s.push(message[:1])
			return len(s.outside.queue)
		}
		s := open(t)
		if got := []int{waits(s[0]), waits(s[1]), waits(s[2])}; !slices.Equal(got, []int{2, 1, 2}) || s[1].ctx.Err() != nil {
			t.Errorf("%d wait", got)
		}
		if s[1].push(message); len(s[1].outside.queue) != 0 || s[1].ctx.Err() != nil {
			t.Error("what has no room alone is kept, or ended the session")
		}
		s[0].outside.take()
		if s[1].push(message); len(s[1].outside.queue) != 1 {
			t.Error("what was read has no room again")
		}
	})
	t.Run("unread-by-who-does-not-read", func(t *testing.T) {
		s := open(t)
		for _, s := range s {
			s.outside.attach(false)
			s.push(message)
		}
		if s[0].ctx.Err() != nil || s[1].ctx.Err() == nil || s[2].ctx.Err() != nil {
			t.Error("not the one past the limit lost its session")
		}
		if s[0].end(); s[0].outside.put(message) {
			t.Error("a session that is over takes more than a little")
		}
	})
}
