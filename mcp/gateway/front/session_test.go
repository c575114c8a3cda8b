package front

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSessionsAreTheirOwners(t *testing.T) {
	const ann, bob = "Authorization: Bearer token-ann", "Authorization: Bearer token-bob"
	type facts struct {
		status int
		code   string
	}
	unknown := facts{404, "-32001"}
	for _, c := range []struct {
		name    string
		method  string
		path    string
		body    string
		headers []string // "SESSION" is the id
		want    facts
	}{
		{"owner", "POST", "/mcp", rpc("1", "ping", "{}"), []string{ann, "Mcp-Session-Id: SESSION"}, facts{200, ""}},
		{"owner-says-the-revision", "POST", "/mcp", rpc("1", "ping", "{}"),
			[]string{ann, "Mcp-Session-Id: SESSION", "Mcp-Protocol-Version: 2025-06-18"}, facts{200, ""}},
		{"stolen-with-another-token", "POST", "/mcp", rpc("1", "ping", "{}"), []string{bob, "Mcp-Session-Id: SESSION"}, unknown},
		{"stolen-without-a-token", "POST", "/mcp", rpc("1", "ping", "{}"), []string{"Mcp-Session-Id: SESSION"}, unknown},
		{"stolen-to-end", "DELETE", "/mcp", "", []string{bob, "Mcp-Session-Id: SESSION"}, unknown},
		{"at-another-endpoint", "POST", "/servers/files/mcp", rpc("1", "ping", "{}"), []string{ann, "Mcp-Session-Id: SESSION"}, unknown},
		{"as-a-stream-of-2024", "POST", "/sse/messages?session=SESSION", rpc("1", "ping", "{}"), []string{ann}, unknown},
		{"forged", "POST", "/mcp", rpc("1", "ping", "{}"), []string{ann, "Mcp-Session-Id: AAAAAAAAAAAAAAAAAAAAAAAAAA"}, unknown},
		{"in-small-letters", "POST", "/mcp", rpc("1", "ping", "{}"), []string{ann, "Mcp-Session-Id: session"}, unknown},
		{"none", "POST", "/mcp", rpc("1", "ping", "{}"), []string{ann}, facts{400, "-32600"}},
		{"none-to-listen", "GET", "/mcp", "", []string{ann}, facts{400, "-32000"}},
		{"none-to-end", "DELETE", "/mcp", "", []string{ann}, facts{400, "-32000"}},
		{"of-another-revision", "POST", "/mcp", rpc("1", "ping", "{}"),
			[]string{ann, "Mcp-Session-Id: SESSION", "Mcp-Protocol-Version: 2025-11-25"}, facts{400, "-32000"}},
		{"of-no-revision", "POST", "/mcp", rpc("1", "ping", "{}"),
			[]string{ann, "Mcp-Session-Id: SESSION", "Mcp-Protocol-Version: 1999-01-01"}, facts{400, "-32022"}},
		{"a-header-that-lies", "POST", "/mcp", rpc("1", "tools/call", `{"name":"echo"}`),
			[]string{ann, "Mcp-Session-Id: SESSION", "Mcp-Method: tools/list"}, facts{400, "-32020"}},
		{"a-header-that-names-another", "POST", "/mcp", rpc("1", "tools/call", `{"name":"echo"}`),
			[]string{ann, "Mcp-Session-Id: SESSION", "Mcp-Name: drop"}, facts{400, "-32020"}},
		{"stateless-meta-in-a-session", "POST", "/mcp", rpc("1", "ping", "{"+meta+"}"), []string{ann, "Mcp-Session-Id: SESSION"}, facts{200, ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			id := begin(t, g, "/mcp", "2025-06-18", ann)
			var headers []string
			for _, h := range c.headers {
				headers = append(headers, strings.Replace(strings.Replace(h, "SESSION", id, 1), ": session", ": "+strings.ToLower(id), 1))
			}
			w := serve(g, come(c.method, strings.Replace(c.path, "SESSION", id, 1), c.body, headers...))
			_, number := code(w.Body.Bytes())
			if diff := cmp.Diff(fmt.Sprint(c.want), fmt.Sprint(facts{w.Code, number})); diff != "" {
				t.Errorf("it was answered otherwise (-want +got):\n%s\n%s", diff, w.Body)
			}
			if w := serve(g, come("POST", "/mcp", rpc("2", "ping", "{}"), ann, "Mcp-Session-Id: "+id)); w.Code != 200 {
				t.Errorf("the owner's session is gone: %d", w.Code)
			}
		})
	}
}

func TestSessionsAreBounded(t *testing.T) {
	initialize := rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)
	open := func(g *testFront, who string) bool {
		w := serve(g, come("POST", "/mcp", initialize, "Authorization: Bearer token-"+who))
		return w.Header().Get(headerSession) != ""
	}
	t.Run("of-one-identity", func(t *testing.T) {
		g, _ := scripted(t, func(o *setup) { o.Limits.SessionsPerIdentity = 2 })
		if got, want := []bool{open(g, "ann"), open(g, "ann"), open(g, "ann"), open(g, "bob")}, []bool{true, true, false, true}; !cmp.Equal(got, want) {
			t.Errorf("opened %v, want %v", got, want)
		}
	})
	t.Run("of-all", func(t *testing.T) {
		g, _ := scripted(t, func(o *setup) { o.Limits.Sessions = 2 })
		if got, want := []bool{open(g, "ann"), open(g, "bob"), open(g, "eve")}, []bool{true, true, false}; !cmp.Equal(got, want) {
			t.Errorf("opened %v, want %v", got, want)
		}
	})
	t.Run("one-that-nobody-used-gives-way-to-its-owner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, _ := scripted(t, func(o *setup) { o.Limits.Sessions = 2 })
			first := begin(t, g, "/mcp", "2025-11-25")
			time.Sleep(time.Minute / 2)
			second := begin(t, g, "/mcp", "2025-11-25")
			time.Sleep(time.Minute/2 - 1)
			if w := serve(g, come("POST", "/mcp", initialize)); w.Header().Get(headerSession) != "" {
				t.Error("it gave way too early")
			}
			time.Sleep(time.Nanosecond)
			if open(g, "ann") {
				t.Error("another identity's session gave way")
			}
			third := begin(t, g, "/mcp", "2025-11-25")
			for id, status := range map[string]int{first: 404, second: 200, third: 200} { // in any order: each is asked alone
				if w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), "Mcp-Session-Id: "+id)); w.Code != status {
					t.Errorf("status %d, want %d", w.Code, status)
				}
			}
			g.table.EndAll()
		})
	})
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := scripted(t, func(o *setup) { o.Limits.SessionIdle = time.Hour })
		id := "Mcp-Session-Id: " + begin(t, g, "/mcp", "2025-11-25")
		ping := func() int { return serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), id)).Code }
		time.Sleep(time.Hour - 1)
		if got := ping(); got != 200 {
			t.Fatalf("before its time: %d", got)
		}
		time.Sleep(time.Hour - 1)
		if got := ping(); got != 200 {
			t.Fatalf("before its time, again: %d", got)
		}

		done := make(chan int)
		go func() { done <- serve(g, come("POST", "/mcp", rpc("1", "tools/call", `{"name":"wait"}`), id)).Code }()
		<-s.entered
		time.Sleep(10 * time.Hour) // a request is under way
		s.free <- struct{}{}
		if got := <-done; got != 200 {
			t.Fatalf("a long request: %d", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			w := httptest.NewRecorder()
			http.Handler(g).ServeHTTP(w, come("GET", "/mcp", "", id).WithContext(ctx))
			done <- w.Code
		}()
		time.Sleep(10 * time.Hour) // somebody listens
		if g.table.Count() != 1 {
			t.Error("the session ended under its listener")
		}
		cancel()
		if got := <-done; got != 200 {
			t.Fatalf("a long stream: %d", got)
		}
		time.Sleep(time.Hour + 1)
		synctest.Wait()
		if got := ping(); got != 404 || g.table.Count() != 0 {
			t.Errorf("after its time: %d", got)
		}
	})
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	wait := func(id int) string { return rpc(fmt.Sprint(id), "tools/call", `{"name":"wait"}`) }
	g, s := scripted(t, func(o *setup) { o.Limits.Requests, o.Limits.RequestsPerSession = 3, 2 })
	one, two := "Mcp-Session-Id: "+begin(t, g, "/mcp", "2025-11-25"), "Mcp-Session-Id: "+begin(t, g, "/mcp", "2025-11-25")
	done := make(chan int, 3)
	start := func(id int, header string) {
		go func() { done <- serve(g, come("POST", "/mcp", wait(id), header)).Code }()
		within(t, "the request", s.entered)
	}
	refused := func(id int, header string, status int, reason string) {
		t.Helper()
		w := serve(g, come("POST", "/mcp", wait(id), header))
		if got, _ := code(w.Body.Bytes()); w.Code != status || got != reason {
			t.Errorf("it was answered with %d %s, want %d %s", w.Code, got, status, reason)
		}
	}
	start(1, one)
	refused(1, one, http.StatusBadRequest, "id_in_use")
	start(2, one)
	refused(3, one, http.StatusTooManyRequests, "busy")
	start(1, two) // the same id in another session
	refused(2, two, http.StatusTooManyRequests, "busy")
	if w := serve(g, come("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, one)); w.Code != 202 {
		t.Errorf("a notification was answered with %d", w.Code)
	}
	for range 3 {
		s.free <- struct{}{}
		if got := within(t, "the answer", done); got != 200 {
			t.Errorf("status %d", got)
		}
	}
	if w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), one)); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}
