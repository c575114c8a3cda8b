package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/mcp/wire"
)

// A forgetful server gives sessions, and refuses those of the time before its last restart.
type forgetful struct {
	*scripted
	restarts atomic.Int32
}

func serveForgetful(t *testing.T, s script, refuse func(rw http.ResponseWriter, w spoken)) *forgetful {
	t.Helper()
	f := &forgetful{scripted: serveScript(t, s, false)}
	f.intercept = func(rw http.ResponseWriter, r *http.Request, w spoken) bool {
		id := fmt.Sprint("session-", f.restarts.Load())
		if sent := r.Header.Get(sessionHeader); sent != "" && sent != id {
			refuse(rw, w)
			return true
		}
		rw.Header().Set(sessionHeader, id)
		return false
	}
	return f
}

// withStatus refuses with a status and, in words, a JSON-RPC error that repeats the id.
func withStatus(status int, words string) func(rw http.ResponseWriter, w spoken) {
	return func(rw http.ResponseWriter, w spoken) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		if words != "" && w.id != "" {
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":%q}}`, w.id, words)
		}
	}
}

// TestARestartedServerEndsTheLink shows that the first request that fails because of a lost session ends the link, and is not repeated.
func TestARestartedServerEndsTheLink(t *testing.T) {
	request := func(method, params string) func(context.Context, *testing.T, *Link, Call) {
		return func(ctx context.Context, t *testing.T, l *Link, _ Call) {
			if reply, err := l.Request(ctx, method, []byte(params), nil); err == nil && reply.Error == nil {
				t.Errorf("Request(%s) = %s, want it to fail", method, reply.Result)
			}
		}
	}
	requests := map[string]func(context.Context, *testing.T, *Link, Call){
		"tools/call": func(ctx context.Context, t *testing.T, l *Link, c Call) {
			r := l.Call(ctx, c, nil)
			if r.Effect != EffectUnknown || r.Code != CodeUnreachable && r.Code != CodeRPC {
				t.Errorf("Call() = %+v, want it unknown", r)
			}
			lost := strings.Contains(r.Reason, "forgotten the session")
			if said := strings.Contains(r.Reason, "404") || strings.Contains(r.Reason, "410"); said != lost {
				t.Errorf("Call() = %+v, want a 404 or 410 read as a lost session, and no other answer", r)
			}
		},
		"tools/list": func(ctx context.Context, t *testing.T, l *Link, _ Call) {
			if k, err := l.Listing(ctx, 0); err == nil {
				t.Errorf("Listing() = %+v, want an error", k)
			}
		},
		"prompts/list":        request("prompts/list", `{}`),
		"prompts/get":         request("prompts/get", `{"name":"p"}`),
		"resources/read":      request("resources/read", `{"uri":"a:b"}`),
		"resources/subscribe": request("resources/subscribe", `{"uri":"a:b"}`),
	}
	for _, status := range []int{404, 410, 400, 401, 403} {
		for _, words := range []string{"", "Session not found"} {
			for method, send := range requests { // in any order
				t.Run(fmt.Sprintf("%d%.1s/%s", status, words, method), func(t *testing.T) {
					noLeak(t)
					srv := serveForgetful(t, honest, withStatus(status, words))
					u := upstreams(t, Limits{}, srv.server())
					l := mustLink(t, u, "web", Peer{Protocol: older})
					c, before := callByListing(t, l, `{}`), srv.count(method)
					srv.restarts.Add(1)
					send(t.Context(), t, l, c)
					if n := srv.count(method) - before; n != 1 || l.Err() == nil {
						t.Errorf("the server got %s %d times, and the link ended with %v; want it once, and an error", method, n, l.Err())
					}
					next := mustLink(t, u, "web", Peer{Protocol: older})
					if r := next.Call(t.Context(), callByListing(t, next, `{}`), nil); r.Effect != EffectDone {
						t.Errorf("Call() over the next link = %+v, want it done", r)
					}
				})
			}
		}
	}
}

// TestAFailedListingEndsTheSession shows that a listing that fails with any status ends its session, but no call under way.
func TestAFailedListingEndsTheSession(t *testing.T) {
	for _, status := range []int{404, 500} {
		for _, sessions := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/sessions-%t", status, sessions), func(t *testing.T) {
				noLeak(t)
				var busy atomic.Bool
				calling, answer := make(chan struct{}, 1), make(chan struct{})
				srv := serveScript(t, answering("tools/call", func(w spoken) []string {
					calling <- struct{}{}
					<-answer
					return honest(w)
				}), false)
				srv.intercept = func(rw http.ResponseWriter, _ *http.Request, w spoken) bool {
					if sessions {
						rw.Header().Set(sessionHeader, "one")
					}
					if busy.Load() && w.method == methodList {
						rw.WriteHeader(status)
						return true
					}
					return false
				}
				l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: older})
				c, returned := callByListing(t, l, `{}`), make(chan Returned)
				go func() { returned <- l.Call(t.Context(), c, nil) }()
				<-calling
				busy.Store(true)
				if k, err := l.Listing(t.Context(), 0); err == nil {
					t.Errorf("Listing() = %+v, want an error", k)
				}
				lost := sessions && status == 404 // the server's word
				if ended := l.Err() != nil; ended != lost {
					t.Errorf("Err() during a call = %v, want the link ended: %t", l.Err(), lost)
				}
				close(answer)
				if r := <-returned; (r.Effect == EffectDone) == lost {
					t.Errorf("Call() = %+v, want it done: %t", r, !lost)
				}
				if ended := l.Err() != nil; ended != sessions {
					t.Errorf("Err() = %v, want the link ended: %t", l.Err(), sessions)
				}
			})
		}
	}
}

// TestALostSessionOverSSE shows that a POST that is answered with 404 ends the link, although the stream stays open.
func TestALostSessionOverSSE(t *testing.T) {
	noLeak(t)
	var lost atomic.Bool
	events := make(chan string, 10)
	hold := make(chan struct{})
	srv := serveScript(t, honest, false)
	srv.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			rw.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(rw, "event: endpoint\ndata: /messages?session=1\n\n")
			for {
				http.NewResponseController(rw).Flush()
				select {
				case line := <-events:
					io.WriteString(rw, event(line))
				case <-r.Context().Done():
					return
				case <-hold:
					return
				}
			}
		}
		if lost.Load() {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		for _, line := range honest(readWire([]byte(readAll(r)))) {
			events <- line
		}
		rw.WriteHeader(http.StatusAccepted)
	})
	t.Cleanup(func() { close(hold) })
	s := srv.server()
	s.Type = TypeSSE
	l := mustLink(t, upstreams(t, Limits{}, s), "web", Peer{Protocol: older, OnMessage: func(wire.Message) {}})
	c := callByListing(t, l, `{}`)
	lost.Store(true)
	if r := l.Call(t.Context(), c, nil); r.Code != CodeUnreachable || r.Effect != EffectUnknown || l.Err() == nil {
		t.Errorf("Call() = %+v and Err() = %v, want %s, unknown, and an error", r, l.Err(), CodeUnreachable)
	}
}

// TestALostSessionIsNoticedWithoutARequest shows that the link of a client that only waits for notifications ends: its stream breaks, and the
// server refuses the next one.
func TestALostSessionIsNoticedWithoutARequest(t *testing.T) {
	t.Parallel()
	srv := serveForgetful(t, announces, withStatus(404, ""))
	told, cut := make(chan struct{}), make(chan struct{})
	srv.get = func(rw http.ResponseWriter, _ *http.Request) {
		if srv.restarts.Load() > 0 {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, event(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`))
		http.NewResponseController(rw).Flush()
		<-cut
	}
	l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: older, OnMessage: func(wire.Message) { close(told) }})
	listingOf(t, l)
	<-told
	srv.restarts.Add(1)
	close(cut)
	<-l.Done()
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "forgotten the session") {
		t.Errorf("Err() = %v, want that the session is forgotten", err)
	}
}
