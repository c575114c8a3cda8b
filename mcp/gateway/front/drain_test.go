package front

import (
	"bufio"
	"context"
	"errors"
	"testing"
	"time"

	"pgfsm/mcp/gateway/session"
)

func TestDrain(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	opened := func() string {
		return "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-06-18"}`)).Header.Get(headerSession)
	}
	header, quiet := opened(), opened() // a header with something under way, and one without
	stateless := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + methodListen}
	status := make(chan int, 3)
	go func() {
		status <- do(t, at, "POST", "/mcp", rpc("1", "tools/call", `{"name":"wait"}`), header).StatusCode
	}()
	within(t, "the call", s.entered)
	stream := &eventReader{t: t, r: bufio.NewReader(do(t, at, "GET", "/mcp", "", quiet).Body)}
	busy := &eventReader{t: t, r: bufio.NewReader(do(t, at, "GET", "/mcp", "", header).Body)}
	entered := make(chan struct{})
	s.before = func(q *session.Request) {
		if q.Method == methodListen {
			close(entered)
		}
	}
	go func() {
		status <- do(t, at, "POST", "/mcp", rpc("2", methodListen, "{"+meta+"}"), stateless...).StatusCode
	}()
	within(t, "the subscription", entered)

	drained := make(chan error, 1)
	go func() { drained <- g.Drain(t.Context()) }()
	if _, _, _, ok := stream.next(); ok {
		t.Error("something came on the stream")
	}
	if got := within(t, "the end of the subscription", status); got != 200 {
		t.Errorf("the subscription: %d", got)
	}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"a-request", "POST", "/mcp", rpc("3", "ping", "{}"), []string{header}},
		{"a-request-without-a-session", "POST", "/mcp", rpc("3", "ping", "{}"), nil},
		{"a-session", "POST", "/mcp", rpc("3", "initialize", `{"protocolVersion":"2025-06-18"}`), nil},
		{"a-stream", "GET", "/mcp", "", []string{quiet}},
		{"a-channel", "GET", "/sse", "", nil},
	} {
		r := do(t, at, c.method, c.path, c.body, c.headers...)
		if reason, _ := code([]byte(whole(t, r.Body))); r.StatusCode != 503 || reason != "draining" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", c.name, r.StatusCode, reason)
		}
	}
	if got := do(t, at, "POST", "/mcp", `{"jsonrpc":"2.0","id":"pgfsm-1","result":{}}`, header).StatusCode; got != 202 {
		t.Errorf("an answer of a client that has something under way: %d", got)
	}
	if got := do(t, at, "GET", "/mcp", "", header).StatusCode; got != 409 {
		t.Errorf("the stream of a client that has something under way is not there any more: %d", got)
	}
	select {
	case err := <-drained:
		t.Fatalf("it did not wait for the call: %v", err)
	default:
	}
	s.free <- struct{}{}
	if got := within(t, "the answer", status); got != 200 {
		t.Errorf("the call: %d", got)
	}
	if _, _, _, ok := busy.next(); ok {
		t.Error("something came on the stream of the session with the call")
	}
	if err := within(t, "the end", drained); err != nil || g.table.Count() != 0 {
		t.Errorf("%v, and %d sessions", err, g.table.Count())
	}
	if err := g.Drain(t.Context()); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestDrainCutsOffWhatTakesTooLong(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	header := "Mcp-Session-Id: " + do(t, at, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-06-18"}`)).Header.Get(headerSession)
	status := make(chan int, 1)
	go func() {
		status <- do(t, at, "POST", "/mcp", rpc("1", "tools/call", `{"name":"wait"}`), header).StatusCode
	}()
	within(t, "the call", s.entered)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := g.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	within(t, "the end of the call", s.ends)
	within(t, "its answer", status)
}
