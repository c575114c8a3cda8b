package front

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/internal/web"
)

// untilThen authenticates like another authenticator until a time. After that the token has expired, or its owner is blocked.
type untilThen struct {
	web.Authenticator
	ends time.Time
}

func (u untilThen) Authenticate(r *http.Request) (web.Caller, error) {
	if !time.Now().Before(u.ends) {
		return web.Caller{}, errors.New("expired")
	}
	return u.Authenticator.Authenticate(r)
}

// TestStreamsEndWithTheirToken: streams without an end of their own end at the first sign of life after their token became invalid.
func TestStreamsEndWithTheirToken(t *testing.T) {
	const token = "Authorization: Bearer jwt,ann,cli,,day,1"
	for _, c := range []struct {
		name string
		open func(t *testing.T, g *testFront) *http.Request
	}{
		{"subscription", func(*testing.T, *testFront) *http.Request {
			return come("POST", "/mcp", rpc("1", methodListen, "{"+meta+"}"), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+methodListen, token)
		}},
		{"stream-of-a-session", func(t *testing.T, g *testFront) *http.Request {
			return come("GET", "/mcp", "", "Mcp-Session-Id: "+begin(t, g, "/mcp", "2025-11-25", token), token)
		}},
		{"stream-of-2024-11-05", func(*testing.T, *testFront) *http.Request { return come("GET", "/sse", "", token) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := scripted(t, func(o *setup) {
					withProvider(o)
					o.Clients = untilThen{provider{}, time.Now().Add(time.Minute)}
				})
				ctx, cancel := context.WithCancel(t.Context())
				status := make(chan int, 1)
				r := c.open(t, g).WithContext(ctx)
				go func() { status <- serve(g, r).Code }()
				ended := func(after time.Duration) bool {
					time.Sleep(after) // the time of the bubble
					synctest.Wait()
					return len(status) > 0
				}
				if ended(time.Minute - 1) {
					t.Error("the stream ended before its token")
				}
				if !ended(defaultTimeouts.keepAlive) {
					t.Error("the stream outlived its token")
				}
				cancel()
				if got := <-status; got != http.StatusOK {
					t.Errorf("status %d", got)
				}
				g.table.EndAll()
			})
		})
	}
}
