package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

// wondering is an SDK server whose one tool asks for input before it answers.
func wondering() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "wondering", Version: "1"}, nil)
	question := &sdk.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}}
	s.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Params.InputResponses == nil {
				return &sdk.CallToolResult{RequestState: "one", InputRequests: sdk.InputRequestMap{"q": question}}, nil
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "told"}}}, nil
		})
	return s
}

// askedPeer is a peer of a revision with sessions that can be asked in both ways.
func askedPeer() Peer {
	return Peer{Owner: "ann", Protocol: older, Capabilities: []byte(`{"elicitation":{}}`), Rounds: true, Tell: func(wire.Message) {}}
}

// A server without sessions asks a client with one, where that can be asked in results.
func TestServersWithoutSessionsAskInResults(t *testing.T) {
	for _, tt := range []struct {
		name            string
		stateless       bool
		change          func(*Peer)
		protocol, asked string // asked: how the question comes; empty: not at all
		discovers       bool
	}{
		{"can-be-asked", true, func(*Peer) {}, newer, "in its result", true},
		{"cannot-be-asked-in-results", true, func(p *Peer) { p.Rounds = false }, older, "", false},
		{"cannot-be-asked", true, func(p *Peer) { p.Capabilities = nil }, older, "", false},
		{"has-nothing-to-be-asked-for", true, func(p *Peer) { p.Capabilities = []byte(`{}`) }, older, "", false},
		{"speaks-it-anyway", true, func(p *Peer) { p.Protocol = newer }, newer, "in its result", true},
		{"the-server-has-sessions", false, func(*Peer) {}, older, "by a request", false},
		{"and-the-client-speaks-the-latest", false, func(p *Peer) { p.Protocol = newer }, older, "by a request", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			one := wondering()
			h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return one }, &sdk.StreamableHTTPOptions{Stateless: tt.stateless})
			var discovers atomic.Int32
			srv := serveHandler(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get(methodHeader) == methodDiscover {
					discovers.Add(1)
				}
				h.ServeHTTP(rw, r)
			})
			u := upstreams(t, Limits{}, srv)
			p, asked := askedPeer(), ""
			tt.change(&p)
			var l *Link
			answers := func(m wire.Message) {
				if m.Method == "elicitation/create" {
					asked = "by a request"
					if err := l.Answer(t.Context(), m.ID, []byte(`{"action":"accept","content":{}}`), nil); err != nil {
						t.Errorf("Answer() = %v", err)
					}
				}
			}
			l = linked(t, u, "web", p)
			if l.Hello().Protocol != tt.protocol || l.Modern() != (tt.protocol == newer) {
				t.Errorf("Hello() = %+v, want revision %s", l.Hello(), tt.protocol)
			}
			r := l.Call(t.Context(), asCall(t, l, `{}`), answers)
			if strings.Contains(string(r.Result), `"resultType":"input_required"`) {
				asked = "in its result"
			}
			if asked != tt.asked || (r.Effect == EffectDone) != (tt.asked != "") {
				t.Errorf("Call() = %+v with the result %s, asked %q, want %q", r, r.Result, asked, tt.asked)
			}
			if n := discovers.Load(); (n > 0) != tt.discovers {
				t.Errorf("%s came %d times, want any: %t", methodDiscover, n, tt.discovers)
			}
			if n := len(u.byName["web"].links.links); n != 1 {
				t.Errorf("there are %d links, want the one", n)
			}
		})
	}
}

// Whatever a server without sessions makes of server/discover, the link that works is kept, and one that has no better is not asked again.
func TestServersWithoutSessionsThatSpeakNoOtherRevision(t *testing.T) {
	says := func(status int, kind, text string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(status)
			io.WriteString(rw, text)
		}
	}
	const asJSON = "application/json"
	for _, tt := range []struct {
		name     string
		discover http.HandlerFunc
		again    bool // it is asked with every link
	}{
		{"method-not-found", says(200, asJSON, failure("1", -32601)), false},
		{"error-without-an-id", says(200, asJSON, failure("null", -32600)), false},
		{"status-400", says(400, "text/plain", "no"), false},
		{"status-404", says(404, asJSON, failure("1", -32601)), false},
		{"status-429", says(429, "text/plain", "later"), false},
		{"only-older-revisions", says(200, asJSON, result("1", `{"supportedVersions":["2025-11-25"],"capabilities":{}}`)), false},
		{"not-json", says(200, asJSON, "{"), false},
		{"unusable", says(200, asJSON, result("1", `{"supportedVersions":7}`)), false},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // else nobody notices that the client is gone
			<-r.Context().Done()
		}, false},
		{"status-503", says(503, "text/plain", "busy"), true},
		{"redirects", says(307, "text/plain", ""), true},
		{"breaks-off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			inner := serveScript(t, honest, false)
			var discovers atomic.Int32
			srv := serveHandler(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get(methodHeader) == methodDiscover {
					discovers.Add(1)
					tt.discover(rw, r)
					return
				}
				inner.ServeHTTP(rw, r)
			})
			if tt.name == "hangs" {
				srv.ConnectTimeout = soon
			}
			u := upstreams(t, Limits{}, srv)
			for range 3 {
				l := linked(t, u, "web", askedPeer())
				if l.Modern() || l.Hello().Protocol != older {
					t.Errorf("Hello() = %+v, want revision %s", l.Hello(), older)
				}
				if r := l.Call(t.Context(), asCall(t, l, `{}`), nil); r.Effect != EffectDone {
					t.Errorf("Call() = %+v, want done", r)
				}
			}
			if n := discovers.Load(); (n > 1) != tt.again {
				t.Errorf("the server was asked %d times, again %t", n, tt.again)
			}
			if n := len(u.byName["web"].links.links); n != 3 {
				t.Errorf("there are %d links, want 3", n)
			}
		})
	}
}

// A client of the latest revision whose server refused that for now is not tried a second time at once.
func TestNoSecondTryOfTheSame(t *testing.T) {
	noLeak(t)
	inner := serveScript(t, honest, false)
	var discovers atomic.Int32
	srv := serveHandler(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get(methodHeader) == methodDiscover {
			discovers.Add(1)
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(rw, r)
	})
	p := askedPeer()
	p.Protocol = newer
	if l := linked(t, upstreams(t, Limits{}, srv), "web", p); l.Modern() || discovers.Load() != 1 {
		t.Errorf("Hello() = %+v after %d tries, want %s after one", l.Hello(), discovers.Load(), older)
	}
}

// serveHandler is a server over HTTP in the test's own words.
func serveHandler(t *testing.T, h http.HandlerFunc) Server {
	t.Helper()
	return Server{Name: "web", Type: TypeHTTP, URL: sdkHTTP(t, h)}
}

// A second link needs room for a moment. Where there is none the first one is kept, and the next may have better luck.
func TestASecondTryNeedsRoom(t *testing.T) {
	noLeak(t)
	one := wondering()
	u := upstreams(t, Limits{Links: 4}, Server{Name: "s", Type: TypeHTTP, URL: sdkHTTP(t,
		sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return one }, &sdk.StreamableHTTPOptions{Stateless: true}))})
	first, second := linked(t, u, "s", askedPeer()), linked(t, u, "s", askedPeer())
	if !first.Modern() || second.Modern() {
		t.Errorf("revisions %s and %s, want %s for the first of two", first.Hello().Protocol, second.Hello().Protocol, newer)
	}
	if _, err := u.Link(t.Context(), "s", askedPeer()); err == nil {
		t.Error("Link() past the limit = nil error")
	}
	first.Close()
	third := linked(t, u, "s", askedPeer())
	if third.Modern() {
		t.Error("the third has had room where there is none")
	}
	second.Close()
	third.Close()
	if fourth := linked(t, u, "s", askedPeer()); !fourth.Modern() {
		t.Error("the fourth was not tried, for there was no room before")
	}
}

// Who asks for a link and goes away gets none that is better, and the server is not blamed.
func TestWhoGoesAwayInASecondTry(t *testing.T) {
	noLeak(t)
	inner := serveScript(t, honest, false)
	ctx, cancel := context.WithCancel(t.Context())
	srv := serveHandler(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get(methodHeader) == methodDiscover {
			io.Copy(io.Discard, r.Body) // else nobody notices that the client is gone
			cancel()
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(rw, r)
	})
	srv.ConnectTimeout = time.Hour
	u := upstreams(t, Limits{}, srv)
	l, err := u.Link(ctx, "web", askedPeer())
	if err != nil || l.Modern() || l.Err() != nil || u.byName["web"].noRounds.Load() != 0 {
		t.Errorf("Link() = %v, %v, want the first link, and to ask again", l, err)
	}
}

// A server that speaks both eras and was once too busy, or too slow, to say so is asked again: else nobody with a session can be asked until
// the gateway is started anew.
func TestAServerThatWasBusyOnceIsAskedAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		once http.HandlerFunc
	}{
		{"status-429", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) }},
		{"status-403", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) }},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			one := wondering()
			h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return one }, &sdk.StreamableHTTPOptions{Stateless: true})
			var discovers atomic.Int32
			srv := serveHandler(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get(methodHeader) == methodDiscover && discovers.Add(1) == 1 {
					tt.once(rw, r)
					return
				}
				h.ServeHTTP(rw, r)
			})
			if tt.name == "hangs" {
				srv.ConnectTimeout = soon
			}
			u := upstreams(t, Limits{}, srv)
			if l := linked(t, u, "web", askedPeer()); l.Modern() {
				t.Fatal("the first link is of a stateless revision")
			}
			if l := linked(t, u, "web", askedPeer()); l.Modern() || discovers.Load() != 1 {
				t.Errorf("Hello() = %+v after %d tries, want it left alone for a while", l.Hello(), discovers.Load())
			}
			u.byName["web"].noRounds.Add(-int64(roundsAgain))
			if l := linked(t, u, "web", askedPeer()); !l.Modern() {
				t.Errorf("Hello() = %+v after one refusal that says nothing of revisions, want revision %s", l.Hello(), newer)
			}
		})
	}
}
