package front

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What clients leave behind in a hurry is gone soon: goroutines, sessions and requests.
func TestChurnLeavesNothing(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{}}
	send := func(ctx context.Context, method, path, body string, headers ...string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range append(headers, "Content-Type: application/json") {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		response, err := client.Do(r)
		if err != nil {
			return nil
		}
		return response
	}
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		opened := send(ctx, "POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`))
		header := "Mcp-Session-Id: " + opened.Header.Get(headerSession)
		_ = opened.Body.Close()
		send(ctx, "GET", "/mcp", "", header) // a stream that is left open
		done := make(chan struct{})
		go func() {
			defer close(done)
			send(ctx, "POST", "/mcp", rpc("1", "tools/call", `{"name":"wait",`+meta+`}`),
				"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: wait")
		}()
		within(t, "the call", s.entered)
		cancel()
		<-done
		within(t, "the end of the call", s.ends)
		if ended := send(t.Context(), "DELETE", "/mcp", "", header); ended.StatusCode != http.StatusNoContent {
			t.Fatalf("DELETE: %d", ended.StatusCode)
		}
	}
	client.CloseIdleConnections()
	deadline := time.Now().Add(patience)
	for {
		goroutines := runtime.NumGoroutine() - before
		if goroutines <= 3 && g.table.Count() == 0 && g.table.Requests.Count() == 0 {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d sessions, %d requests are left\n%s", goroutines, g.table.Count(), g.table.Requests.Count(),
				stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond) // there is nothing that tells when a goroutine is gone
	}
}
