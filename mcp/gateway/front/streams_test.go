package front

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
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
		{"at-once-as-a-stream-that-is-named-first", "stream", []string{"Accept: text/event-stream, application/json"},
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"name\":\"stream\"," + meta + "}}\n\n", "text/event-stream"},
		{"after-others", "say", nil, "event: message\ndata: {\"jsonrpc\":\"2.0\",  \"method\":\"notifications/progress\",\"params\":{\"n\":0}}\n\n" +
			"event: message\ndata: {\"jsonrpc\":\"2.0\",  \"method\":\"notifications/progress\",\"params\":{\"n\":1}}\n\n" +
			"event: message\ndata: {\"jsonrpc\":\"2.0\",  \"method\":\"notifications/progress\",\"params\":{\"n\":2}}\n\n" +
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

func TestEventsHoldAnyJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one-line", `{"a":1}`, "event: message\ndata: {\"a\":1}\n\n"},
		{"carriage-returns", "{\r\n\r}", "event: message\ndata: {   }\n\n"},
		{"colon-and-space", ": x", "event: message\ndata: : x\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, string(appendEvent(nil, session.Event{Name: session.EventMessage, Data: []byte(c.in)}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A client of a session that loses its connection in the middle of a call asks for the rest of the answer, and gets it.
func TestLostStreamsAreTakenUpAgain(t *testing.T) {
	g, s := scripted(t, nil)
	g.timeouts.firstEvent = time.Nanosecond
	at := onLoopback(t, g)
	header := "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)).Header.Get(headerSession)

	lost := do(t, at, "POST", "/mcp", rpc("1", "tools/call", `{"name":"wait"}`), header)
	q := within(t, "the call", s.entered)
	e := &eventReader{t: t, r: bufio.NewReader(lost.Body)}
	name, id, data, _ := e.next()
	if diff := cmp.Diff([]string{"prime", "1_0", ""}, []string{name, id, data}); diff != "" {
		t.Fatalf("the first event (-want +got):\n%s", diff)
	}
	check.NoError(t, q.Out.Send([]byte(`{"n":1}`)))
	if _, id, data, _ = e.next(); id != "1_1" || data != `{"n":1}` {
		t.Fatalf("the second event is %s %s", id, data)
	}
	_ = lost.Body.Close()
	if err := q.Out.Send([]byte(`{"n":2}`)); err != nil { // nobody is there, but somebody will be
		t.Fatal(err)
	}
	again := do(t, at, "GET", "/mcp", "", header, "Last-Event-ID: 1_1")
	e = &eventReader{t: t, r: bufio.NewReader(again.Body)}
	if _, id, data, _ = e.next(); id != "1_2" || data != `{"n":2}` {
		t.Fatalf("the third event is %s %s", id, data)
	}
	check.NoError(t, q.Out.Send([]byte(`{"n":3}`)))
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
	e = &eventReader{t: t, r: bufio.NewReader(do(t, at, "GET", "/mcp", "", header, "Last-Event-ID: 1_3").Body)}
	if _, id, _, ok := e.next(); id != "1_4" || !ok {
		t.Errorf("the answer came not again: %s", id)
	}
	if err := q.Out.Send([]byte(`{}`)); err == nil {
		t.Error("something was said after the answer")
	}
	for _, bad := range []string{"1_9", "2_0", "0_0", "x", "1", "_", "-1_0", "1_-1", "1_0_0", "99999999999999999999_0"} {
		if r := do(t, at, "GET", "/mcp", "", header, "Last-Event-ID: "+bad); r.StatusCode != 400 {
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

	header := "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-06-18"}`)).Header.Get(headerSession)
	ctx, cancel = context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		call(ctx, rpc("1", "tools/call", `{"name":"wait"}`), header)
	}()
	q := within(t, "the call", s.entered)
	cancel()
	within(t, "the client's end of it", over)
	if err := q.Session.Context.Err(); err != nil {
		t.Errorf("the session ended with %v", err)
	}
	s.free <- struct{}{} // it is still there to take it
	if r := do(t, at, "DELETE", "/mcp", "", header); r.StatusCode != 204 {
		t.Errorf("DELETE: %d", r.StatusCode)
	}
	if q.Session.Context.Err() == nil {
		t.Error("the session goes on")
	}
}

func TestTheStreamOutsideOfRequests(t *testing.T) {
	g, _ := scripted(t, nil)
	at := onLoopback(t, g)
	id := do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)).Header.Get(headerSession)
	header, s := "Mcp-Session-Id: "+id, g.table.Find(id, session.Identity{Name: session.Anonymous}, "")
	_ = s.Send([]byte(`{"n":0}`)) // before anybody listens

	first := do(t, at, "GET", "/mcp", "", header)
	e := &eventReader{t: t, r: bufio.NewReader(first.Body)}
	if _, id, data, _ := e.next(); id != "0_0" || data != `{"n":0}` {
		t.Fatalf("the first event is %s %s", id, data)
	}
	_ = s.Send([]byte(`{"n":1}`))
	if _, id, data, _ := e.next(); id != "0_1" || data != `{"n":1}` {
		t.Fatalf("the second event is %s %s", id, data)
	}
	if r := do(t, at, "GET", "/mcp", "", header); r.StatusCode != 409 {
		t.Errorf("a second stream: %d", r.StatusCode)
	}
	// One who says where it was takes over, since its old connection may seem to be there although it is not.
	second := do(t, at, "GET", "/mcp", "", header, "Last-Event-ID: 0_0")
	again := &eventReader{t: t, r: bufio.NewReader(second.Body)}
	if _, id, data, _ := again.next(); id != "0_1" || data != `{"n":1}` {
		t.Fatalf("the second event came again as %s %s", id, data)
	}
	if _, _, _, ok := e.next(); ok {
		t.Error("the old connection went on")
	}
	_ = s.Send([]byte(`{"n":2}`))
	if _, id, data, _ := again.next(); id != "0_2" || data != `{"n":2}` {
		t.Fatalf("the third event is %s %s", id, data)
	}
	s.End()
	if _, _, _, ok := again.next(); ok {
		t.Error("the stream outlived its session")
	}
}
