package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Both ways say the same to a server, and refuse the same.
func TestBothWaysSayTheSame(t *testing.T) {
	type got struct {
		Method, Path, Host, Body string
		Length                   int64
		Header                   http.Header
	}
	heard := make(chan got, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		heard <- got{r.Method, r.RequestURI, r.Host, readAll(r), r.ContentLength, r.Header}
	}))
	t.Cleanup(srv.Close)
	r := newRoad(Server{URL: srv.URL + "/a b/mcp?q=%20&r=x"}, nil)
	net := r.transport()
	lanes := r.way()
	t.Cleanup(net.close)
	t.Cleanup(lanes.close)
	const frame = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	base := http.Header{"Accept": {"application/json, text/event-stream"}, "User-Agent": {"pgfsm/1"}, "Content-Type": {"application/json"}}
	with := func(name string, values ...string) http.Header {
		header := base.Clone()
		header[name] = values
		return header
	}
	spelled := func(header http.Header) head {
		b, err := spellHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		return head{header: header, spelled: b}
	}
	for _, tt := range []struct {
		name   string
		method string
		head   head
		frame  string
		sent   bool
	}{
		{"post", http.MethodPost, head{header: base}, frame, true},
		{"post-spelled-before", http.MethodPost, spelled(with("Mcp-Session-Id", "one")), frame, true},
		{"long", http.MethodPost, spelled(base), strings.Repeat("x", 1<<20), true},
		{"at-once", http.MethodPost, spelled(base), strings.Repeat("x", atOnce), true},
		{"more", http.MethodPost, head{header: base, more: []Header{{methodHeader, methodCall}, {nameHeader, " a b\t"}}}, frame, true},
		{"more-beside-spelled", http.MethodPost, func() head {
			h := spelled(base)
			h.more = []Header{{methodHeader, methodCall}, {nameHeader, "über"}, {"Mcp-Param-A", ""}}
			return h
		}(), frame, true},
		{"spaces-around", http.MethodPost, head{header: with("X-Key", "  a\tb \t")}, frame, true},
		{"twice", http.MethodPost, head{header: with("X-Key", "a", "b")}, frame, true},
		{"other-letters", http.MethodPost, head{header: with("X-Key", "ä\xff")}, frame, true},
		{"get", http.MethodGet, head{header: with("Last-Event-Id", "7")}, "", true},
		{"delete", http.MethodDelete, spelled(base), "", true},
		{"line-break", http.MethodPost, head{header: with("X-Key", "a\r\nX: b")}, frame, false},
		{"line-feed", http.MethodPost, head{header: with("X-Key", "a\nb")}, frame, false},
		{"nul", http.MethodPost, head{header: with("X-Key", "a\x00")}, frame, false},
		{"delete-character", http.MethodPost, head{header: with("X-Key", "\x7f")}, frame, false},
		{"line-break-in-more", http.MethodPost, head{header: base, more: []Header{{nameHeader, "a\r\nb"}}}, frame, false},
		{"name-with-a-space", http.MethodPost, head{header: with("X Key", "a")}, frame, false},
		{"name-with-a-colon", http.MethodPost, head{header: with("X:", "a")}, frame, false},
		{"no-name", http.MethodPost, head{header: with("", "a")}, frame, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []got
			for _, w := range []way{net, lanes} {
				e := &errand{method: tt.method, target: r.origin, head: tt.head}
				if tt.frame != "" {
					e.frame = []byte(tt.frame)
				}
				resp, err := w.trip(t.Context(), e)
				if (err == nil) != tt.sent {
					t.Fatalf("trip() over %T = %v, want it sent: %t", w, err, tt.sent)
				}
				if err == nil {
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						t.Fatalf("the server has answered %s to %T", resp.Status, w)
					}
					said = append(said, <-heard)
				}
			}
			if tt.sent {
				if diff := cmp.Diff(said[0], said[1]); diff != "" {
					t.Errorf("net/http says something else (-net/http +lanes):\n%s", diff)
				}
			}
		})
	}
}

// Many calls at once to a server that closes every third connection without an answer: each call gets its own answer, or it is
// unknown what became of it, and no call arrives twice.
func TestManyCallsToAServerThatHangsUp(t *testing.T) {
	const callers, calls = 64, 20
	noLeak(t)
	var mu sync.Mutex
	arrived := make(map[string]int)
	served := 0
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := readWire([]byte(readAll(r)))
		if w.method != methodCall {
			rw.Header().Set("Content-Type", "application/json")
			if w.id != "" {
				io.WriteString(rw, honest(w)[0])
			}
			return
		}
		mu.Lock()
		arrived[w.params]++
		served++
		hang, last := served%3 == 0, served%5 == 0
		mu.Unlock()
		if hang {
			panic(http.ErrAbortHandler)
		}
		rw.Header().Set("Content-Type", "application/json")
		if last {
			rw.Header().Set("Connection", "close")
		}
		io.WriteString(rw, result(w.id, w.params))
	}))
	t.Cleanup(srv.Close)
	u := upstreams(t, Limits{}, patient(time.Minute, Server{Name: "s", Type: TypeHTTP, URL: srv.URL}))
	var wg sync.WaitGroup
	links := []*Link{linked(t, u, "s", Peer{Protocol: older}), linked(t, u, "s", Peer{Protocol: older})}
	for i := range callers {
		l := links[i%len(links)]
		c := asCall(t, l, `{}`)
		wg.Go(func() {
			for n := range calls {
				c := c
				c.RunID = newRun()
				c.Arguments = fmt.Appendf(nil, `{"caller":%d,"number":%d}`, i, n)
				r := l.Call(t.Context(), c, nil)
				switch {
				case r.Effect == EffectDone && strings.Contains(string(r.Result), string(c.Arguments)):
				case r.Effect == EffectUnknown && r.Code == CodeUnreachable:
				default:
					t.Errorf("Call(%s) = %+v with the result %s", c.Arguments, r, r.Result)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(arrived) != callers*calls {
		t.Errorf("%d of %d calls arrived", len(arrived), callers*calls)
	}
	for params, n := range arrived { // in any order
		if n != 1 {
			t.Errorf("%s arrived %d times", params, n)
		}
	}
}

// What a server calls itself goes nowhere: messages are for the host that the operator names.
func TestAnEndpointIsAtTheHostThatIsConfigured(t *testing.T) {
	for _, tt := range []struct{ name, endpoint string }{
		{"path", "/m"},
		{"same", "http://kit.example/m"},
		{"capital-letters", "http://KIT.example/m"},
		{"port-said", "http://kit.example:80/m"},
		{"port-empty", "http://kit.example:/m"},
		{"letters-that-become-others", "http://\u212ait.example/m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoad(Server{URL: "http://kit.example/sse"}, func(code, _ string, _ ...any) *fault { return &fault{code: code} })
			target, f := r.endpoint([]byte(tt.endpoint), nil)
			switch {
			case f != nil && (f.code != CodeOrigin || tt.name == "path" || tt.name == "same"):
				t.Errorf("endpoint() = %v", f)
			case f == nil && target.String() != "http://kit.example/m":
				t.Errorf("endpoint() = %s", target)
			}
		})
	}
}
