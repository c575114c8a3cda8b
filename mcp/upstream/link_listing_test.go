package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

// A listing during which the tools change is made again, a bounded number of times, over links too.
func TestChangesDuringListing(t *testing.T) {
	tests := []struct {
		role, tool string
		changed    bool
	}{
		{"says-nothing", "listing-1", false},
		{"says-other-things", "listing-1", false},
		{"changes-before-listing", "listing-1", false},
		{"changes-during-one-listing", "listing-2", false},
		{"changes-during-the-second-page", "page-3", false},
		{"changes-during-two-listings", "listing-3", false},
		{"changes-during-every-listing", "listing-3", true},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			overEach(t, tt.role, func(t *testing.T, s Server) {
				u := upstreams(t, Limits{}, s)
				l := mustLink(t, u, s.Name, Peer{Protocol: older, OnMessage: newMessageLog().accept})
				k := listingOf(t, l)
				if page := string(k.Pages[0]); !strings.Contains(page, `"`+tt.tool+`"`) || l.Changed(k.Number) != tt.changed {
					t.Errorf("Pages[0] = %s, Changed() = %t, want the tool %s, %t", page, l.Changed(k.Number), tt.tool, tt.changed)
				}
				r := l.Call(t.Context(), Call{Server: s.Name, Tool: "echo", Arguments: object(`{}`), RunID: newRun(), Listing: k.Number}, nil)
				if tt.changed {
					checkStopped(t, r)
				} else if r.Effect != EffectDone {
					t.Errorf("Call() = %+v, want done", r)
				}
			})
		})
	}
}

// A change that comes with a call makes the listing stale; the next is made anew, on the same link.
func TestAChangeStopsCallsUntilTheNextListing(t *testing.T) {
	overEach(t, "changes-during-the-call", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		first := listingOf(t, l)
		if again := listingOf(t, l); again != first {
			t.Error("Listing() = another, want the one that is kept")
		}
		c := callByListing(t, l, `{}`)
		if r := l.Call(t.Context(), c, nil); r.Effect != EffectDone {
			t.Fatalf("Call() = %+v, want done", r)
		}
		if !l.Changed(first.Number) {
			t.Error("Changed() = false, want true")
		}
		c.RunID = newRun()
		checkStopped(t, l.Call(t.Context(), c, nil))
		second := listingOf(t, l)
		if second == first || l.Changed(second.Number) || !strings.Contains(string(second.Pages[0]), "listing-2") {
			t.Errorf("Listing() = %s, want the second", second.Pages[0])
		}
		c.RunID, c.Listing = newRun(), second.Number
		if r := l.Call(t.Context(), c, nil); r.Effect != EffectDone {
			t.Errorf("Call() by the new listing = %+v, want done", r)
		}
		// A newer link does not take an older one's listing. (The scripts over SSE serve one stream.)
		if s.Type == TypeSSE {
			return
		}
		if other := mustLink(t, u, s.Name, Peer{Protocol: older}); !other.Changed(second.Number) {
			t.Error("Changed() of a newer link = false, want true")
		}
	})
}

// TestTheEmptyCursor shows that the empty text ends the list of a server up to 2025-11-25, and is a cursor after that.
func TestTheEmptyCursor(t *testing.T) {
	lists := func(w spoken) []string {
		if strings.Contains(w.params, `"cursor":""`) {
			return []string{result(w.id, onePage)}
		}
		return []string{result(w.id, `{"tools":[],"nextCursor":""}`)}
	}
	for _, tt := range []struct {
		protocol string
		listen   func(w spoken) []string
		pages    int
	}{{older, nil, 1}, {newer, silence, 2}} {
		speak := script(honest)
		if tt.listen != nil {
			speak = modern(tt.listen)()
		}
		srv := serveScript(t, func(w spoken) []string {
			if w.method == methodList {
				return lists(w)
			}
			return speak(w)
		}, false)
		l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: tt.protocol})
		if k := listingOf(t, l); len(k.Pages) != tt.pages || l.ServerInfo().Protocol != tt.protocol {
			t.Errorf("%s: %d pages over %s, want %d", tt.protocol, len(k.Pages), l.ServerInfo().Protocol, tt.pages)
		}
	}
}

func TestListingsAreKeptAndShared(t *testing.T) {
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	srv := serveScript(t, answering("tools/list", func(w spoken) []string {
		<-release
		return []string{result(w.id, onePage)}
	}), false)
	l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: older})
	const rivals = 16
	var wg sync.WaitGroup
	for range rivals {
		wg.Go(func() {
			if _, err := l.Listing(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the server was asked", func() bool { return srv.count(methodList) == 1 })

	// One that gives up takes nobody with it.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e *LinkError
	if _, err := l.Listing(ctx, time.Hour); !errors.As(err, &e) || e.Code != CodeCancelled {
		t.Errorf("Listing(cancelled) = %v, want %s", err, CodeCancelled)
	}
	free()
	wg.Wait()

	before := srv.count(methodList)
	if k, err := l.Listing(t.Context(), time.Hour); err != nil || l.cached.Load() != k || srv.count(methodList) != before {
		t.Errorf("Listing(an hour) = %p, %v, want the cached one, unasked", k, err)
	}
	if _, err := l.Listing(t.Context(), 0); err != nil || srv.count(methodList) != before+1 {
		t.Errorf("Listing(0) asked %d times more, want once", srv.count(methodList)-before)
	}
}

// News between requests: what changes the tools is incoming and told, other things are told, requests are answered by the peer.
func TestNewsOfALink(t *testing.T) {
	noLeak(t)
	n := serveStream(t, announces)
	u := upstreams(t, Limits{}, n.server())
	peer := newMessageLog()
	l := mustLink(t, u, "web", Peer{Protocol: older, OnMessage: peer.accept})
	if n.gets.Load() != 0 {
		t.Error("the stream was opened before anybody listed")
	}
	k := listingOf(t, l)
	n.sendEvents(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a\/b"}}`)
	if l.Changed(k.Number) {
		t.Error("Changed() after other news = true, want false")
	}
	n.sendEvents(t, changedNote, progress("1", 1))
	if !l.Changed(k.Number) {
		t.Error("Changed() = false, want true")
	}
	n.lines <- event(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}`)
	for m := peer.next(t); ; m = peer.next(t) {
		if m.Method == "elicitation/create" {
			if err := l.Answer(t.Context(), m.ID, []byte(`{"action":"decline"}`), nil); err != nil {
				t.Errorf("Answer() = %v", err)
			}
			break
		}
	}
	select {
	case w := <-n.answered:
		w.check(untilAnswered)
	case <-time.After(10 * time.Second):
		t.Fatal("the request was not answered")
	}
	want := []string{`notifications/resources/updated {"uri":"a\/b"}`, "notifications/tools/list_changed", "elicitation/create {}"}
	if diff := cmp.Diff(want, peer.entries()); diff != "" {
		t.Errorf("the peer was told (-want +got):\n%s", diff)
	}
	if listingOf(t, l) == k || n.gets.Load() != 1 {
		t.Errorf("after the change: the same listing, or %d streams, want a new one and 1", n.gets.Load())
	}
}

// What comes on the stream of a call behind the answer is incoming too, and does not hold the answer up.
func TestNewsBehindAnAnswer(t *testing.T) {
	noLeak(t)
	answered := make(chan struct{})
	srv := serveScript(t, honest, false)
	srv.intercept = func(rw http.ResponseWriter, r *http.Request, w spoken) bool {
		if w.method != methodCall {
			return false
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(flushing{rw}, event(result(w.id, oneResult)))
		select {
		case <-answered:
			io.WriteString(rw, event(result(w.id, oneResult))+event(changedNote))
		case <-r.Context().Done():
		}
		return true
	}
	l, r := linkCall(t, upstreams(t, Limits{}, srv.server()), "web", `{}`)
	if r.Effect != EffectDone {
		t.Fatalf("Call() = %+v, want done", r)
	}
	k := listingOf(t, l)
	close(answered)
	eventually(t, "the change was received", func() bool { return l.Changed(k.Number) })
}

func TestWhoOpensTheStream(t *testing.T) {
	for caps, want := range map[string]bool{ // in any order
		`{"tools":{"listChanged":true}}`: true, `{"tools":{}}`: false, `{"prompts":{"listChanged":true},"logging":{}}`: false,
		`{"tools":{"listChanged":"true"}}`: false, `{}`: false, `{"tools":[]}`: false, `{"tools":null}`: false,
	} {
		l := &Link{serverInfo: ServerInfo{Capabilities: []byte(caps)}}
		if l.readAnnouncements(); l.usesStream != want {
			t.Errorf("the stream is opened with the capabilities %s: %t, want %t", caps, l.usesStream, want)
		}
	}
}

// A standalone stream that lies ends the link.
func TestNewsThatLie(t *testing.T) {
	tests := []struct{ name, lines, reason string }{
		{"not-json", event("hello"), "not a JSON-RPC message"},
		{"method-twice", event(`{"jsonrpc":"2.0","method":"a","method":"b"}`), "twice"},
		{"an-answer", event(result("3", oneResult)), "not for answers"},
		{"too-large", event(strings.Repeat("x", envelopeSlack+101)), "more than"},
		{"too-many", strings.Repeat(event(changedNote), 21), "more than 20 messages"},
		{"too-many-that-are-empty", strings.Repeat(": alive\n\n", 21), "more than 20 messages"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			n := serveStream(t, announces)
			u := upstreams(t, Limits{ResultBytes: 100, CatalogBytes: 100, Unasked: 20}, n.server())
			l := mustLink(t, u, "web", Peer{Protocol: older})
			listingOf(t, l)
			n.lines <- tt.lines
			select {
			case <-l.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the link goes on")
			}
			if err := l.Err(); err == nil || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("Err() = %v, want %q", err, tt.reason)
			}
		})
	}
}

// However a server of the latest revision answers who wants to listen, its tools can be listed and called.
func TestAnswersToListening(t *testing.T) {
	for _, role := range []string{"listen-ends", "listen-refused", "listen-hangs"} {
		t.Run(role, func(t *testing.T) {
			judge := func(t *testing.T, s Server) {
				noLeak(t)
				peer := newMessageLog()
				l := mustLink(t, upstreams(t, Limits{}, s), s.Name, Peer{Protocol: newer, OnMessage: peer.accept})
				for range 2 {
					if r := l.Call(t.Context(), callByListing(t, l, `{}`), nil); r.Effect != EffectDone {
						t.Errorf("Call() = %+v, want done", r)
					}
				}
				l.Close()
				if said := peer.entries(); len(said) != 0 { // that we are listened to is our affair
					t.Errorf("the peer was told %q, want nothing", said)
				}
			}
			t.Run("stdio", func(t *testing.T) { judge(t, childServer(t, role)) })
			t.Run("http", func(t *testing.T) { judge(t, serveScript(t, roles[role](), true).server()) })
		})
	}
}

// Servers of the SDK tell links of a change over every transport and in both kinds of revisions.
func TestRealServersTellOfChanges(t *testing.T) {
	for _, tt := range []struct{ name, protocol string }{
		{"stdio", older}, {"stdio", newer}, {"sse", older}, {"http-stateful", older}, {"http-stateful-json", older}, {"http-stateless", newer},
	} {
		t.Run(tt.name+"-"+tt.protocol, func(t *testing.T) {
			noLeak(t)
			s := realServers(growing())[tt.name](t)
			if tt.name == "stdio" {
				s = childServer(t, "grows")
			}
			u := upstreams(t, Limits{}, s)
			var once sync.Once
			incoming := make(chan struct{})
			l := mustLink(t, u, s.Name, Peer{Protocol: tt.protocol, OnMessage: func(m wire.Message) {
				if m.Method == noteToolsChanged {
					once.Do(func() { close(incoming) })
				}
			}})
			k := listingOf(t, l)
			looks := 0
			eventually(t, "the change was received", func() bool {
				if looks%50 == 0 {
					l.Call(t.Context(), Call{Server: s.Name, Tool: "echo", Arguments: object(`{}`), RunID: newRun(), Listing: k.Number}, nil)
				}
				looks++
				return l.Changed(k.Number)
			})
			select {
			case <-incoming:
			case <-time.After(10 * time.Second):
				t.Error("the peer was not told")
			}
			if page := string(listingOf(t, l).Pages[0]); !strings.Contains(page, `"more"`) {
				t.Errorf("Pages = %s, want the new tool", page)
			}
		})
	}
}
