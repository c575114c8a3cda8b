package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/wire"
)

// messageLog collects what a link is told.
type messageLog struct {
	mu   sync.Mutex
	said []string
	all  chan wire.Message
}

func newMessageLog() *messageLog { return &messageLog{all: make(chan wire.Message, 1000)} }

func (o *messageLog) accept(m wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, strings.TrimSpace(m.Method+" "+string(m.Params)))
	o.all <- m
}

func (o *messageLog) entries() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.said...)
}

// next is the next message, which must come.
func (o *messageLog) next(t *testing.T) wire.Message {
	t.Helper()
	select {
	case m := <-o.all:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was told")
		return wire.Message{}
	}
}

// tokenIn is the progress token of a request, raw.
func tokenIn(w spoken) string {
	return string(wire.Member(wire.Member([]byte(w.params), "_meta"), tokenMember))
}

func progress(token string, done int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"total":2}}`, done, token)
}

func init() {
	talk := func(w spoken) []string {
		token := tokenIn(w)
		if token == "" {
			token = "1"
		}
		return []string{
			progress(token, 1),
			progress(`"caller"`, 9), progress("99", 9), progress(`"`+token+`"`, 9), // nobody's
			`{"jsonrpc":"2.0","method":"notifications/progress"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":9007199254740993,"d":1.0}}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"a":1,"a":2}}`, // has two readings
			`{"jsonrpc":"2.0","method":"notifications/message","params":5}`,             // is none
			`{"jsonrpc":"2.0","method":"notifications/message","params":{},"x":1}`,
			progress(token, 2),
			result(w.id, oneResult),
		}
	}
	maps.Copy(roles, map[string]func() script{
		"talks": func() script {
			return func(w spoken) []string {
				if w.method == methodCall || w.method == "prompts/get" {
					return talk(w)
				}
				return honest(w)
			}
		},
		"asks-in-a-call": func() script {
			return answering("tools/call", func(w spoken) []string {
				return []string{
					`{"jsonrpc":"2.0","id":"7","method":"elicitation/create","params":{"message":"a\/b"}}`, untilAnswered,
					`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`, untilRefused,
					`{"jsonrpc":"2.0","id":{},"method":"elicitation/create","params":{}}`, // these have more than one reading
					`{"jsonrpc":"2.0","id":null,"method":"elicitation/create","params":{}}`,
					`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"a":1,"a":2}}`,
					pingAsk, untilAnswered,
					result(w.id, oneResult),
				}
			})
		},
		"asks-and-does-not-wait": func() script {
			return answering("tools/call", func(w spoken) []string {
				return []string{`{"jsonrpc":"2.0","id":"late","method":"roots/list"}`, result(w.id, oneResult)}
			})
		},
		"asks-twice-with-one-id": func() script {
			return answering("tools/call", func(w spoken) []string {
				ask := `{"jsonrpc":"2.0","id":5,"method":"roots/list"}`
				return []string{ask, ask, result(w.id, oneResult)}
			})
		},
	})
}

// What comes with a request is given to it in order, with the caller's own progress token, and nothing that nobody asked for.
func TestWhatComesWithARequest(t *testing.T) {
	note := `notifications/message {"level":"info","data":{"n":9007199254740993,"d":1.0}}`
	for _, tt := range []struct {
		name, meta string
		want       []string
	}{
		{"with-a-token", `{"progressToken":"caller","x":[1.0]}`, []string{
			`notifications/progress {"progress":1,"progressToken":"caller","total":2}`, note,
			`notifications/progress {"progress":2,"progressToken":"caller","total":2}`,
		}},
		{"with-a-large-token", `{"progressToken":9007199254740993}`, []string{
			`notifications/progress {"progress":1,"progressToken":9007199254740993,"total":2}`, note,
			`notifications/progress {"progress":2,"progressToken":9007199254740993,"total":2}`,
		}},
		{"without-a-token", `{}`, []string{note}},
		{"without-meta", ``, []string{note}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overEach(t, "talks", func(t *testing.T, s Server) {
				u := upstreams(t, Limits{}, s)
				peer := newMessageLog()
				l := mustLink(t, u, s.Name, Peer{Protocol: older, OnMessage: peer.accept})
				incoming := newMessageLog()
				c := callByListing(t, l, `{}`)
				if tt.meta != "" {
					c.Meta = jsontext.Value(tt.meta)
				}
				if r := l.Call(t.Context(), c, incoming.accept); r.Effect != EffectDone || string(r.Result) != oneResult {
					t.Errorf("Call() = %+v, want done", r)
				}
				if diff := cmp.Diff(tt.want, incoming.entries()); diff != "" {
					t.Errorf("on was told (-want +got):\n%s", diff)
				}
				params := []byte(`{"name":"p"}`)
				if tt.meta != "" {
					params = []byte(`{"name":"p","_meta":` + tt.meta + `}`)
				}
				incoming = newMessageLog()
				if r, err := l.Request(t.Context(), "prompts/get", params, incoming.accept); err != nil || string(r.Result) != oneResult {
					t.Errorf("Request() = %+v, %v, want the result", r, err)
				}
				if diff := cmp.Diff(tt.want, incoming.entries()); diff != "" {
					t.Errorf("on was told by the request (-want +got):\n%s", diff)
				}
				if len(peer.entries()) != 0 {
					t.Errorf("the peer was told %q, want nothing", peer.entries())
				}
			})
		})
	}
}

// A request of the server during a call comes to the caller, whose answer goes back, unless the request has more than one reading.
func TestRequestsOfTheServerDuringACall(t *testing.T) {
	overEach(t, "asks-in-a-call", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older, Capabilities: jsontext.Value(`{"elicitation":{}}`)})
		var asked []string
		r := l.Call(t.Context(), callByListing(t, l, `{}`), func(m wire.Message) {
			asked = append(asked, fmt.Sprintf("%s %s %s", m.ID, m.Method, m.Params))
			var err error
			if m.Method == "elicitation/create" {
				err = l.Answer(t.Context(), m.ID, []byte(`{"action":"accept"}`), nil)
			} else {
				err = l.Answer(t.Context(), m.ID, nil, wire.ErrorObject(wire.MethodNotFound, "no", nil))
			}
			if err != nil {
				t.Errorf("Answer() = %v", err)
			}
			if err := l.Answer(t.Context(), m.ID, []byte(`{}`), nil); err != nil { // once more: nothing is sent
				t.Errorf("Answer() again = %v", err)
			}
		})
		if r.Effect != EffectDone {
			t.Errorf("Call() = %+v, want done", r)
		}
		want := []string{`"7" elicitation/create {"message":"a\/b"}`, `7 sampling/createMessage {}`}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if n := len(l.requests.open); n != 0 {
			t.Errorf("%d requests wait for an answer, want none", n)
		}
	})
}

// A request that came with a call which is over waits for nothing: its answer is not sent, and it does not count.
func TestRequestsThatOutliveTheirCall(t *testing.T) {
	overEach(t, "asks-and-does-not-wait", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		for range 3 { // also with the same id again
			incoming := newMessageLog()
			if r := l.Call(t.Context(), callByListing(t, l, `{}`), incoming.accept); r.Effect != EffectDone || len(incoming.entries()) != 1 {
				t.Errorf("Call() = %+v, told %q, want done and the request", r, incoming.entries())
			}
			if n := len(l.requests.open); n != 0 {
				t.Errorf("%d requests wait for an answer, want none", n)
			}
			if err := l.Answer(t.Context(), incoming.next(t).ID, []byte(`{}`), nil); err != nil {
				t.Errorf("Answer() too late = %v, want nothing done", err)
			}
		}
	})
}

func TestARequestIDIsUsedOnce(t *testing.T) {
	overEach(t, "asks-twice-with-one-id", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		if r := l.Call(t.Context(), callByListing(t, l, `{}`), func(wire.Message) {}); r.Code != CodeProtocol || r.Effect != EffectUnknown {
			t.Errorf("Call() = %+v, want %s, unknown", r, CodeProtocol)
		}
	})
}

// TestCancelling: a caller that gives up says so with a notification or, from 2026-07-28 on over HTTP, with the end of the connection.
func TestCancelling(t *testing.T) {
	for _, tt := range []struct {
		kind, protocol string
		said           bool // by a notification
	}{{onOneStream, older, true}, {onItsStream, older, true}, {onOneStream, newer, true}, {onItsStream, newer, false}} {
		t.Run(tt.kind+"-"+tt.protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLinkFixture(t, tt.kind, tt.protocol, ignoreMessage)
				ctx, cancel := context.WithCancel(t.Context())
				c := s.call(ctx, ignoreMessage)
				cancel()
				c.checkEnd(t, 0, CodeCancelled)
				synctest.Wait()
				if tt.said {
					want := spoken{method: noteCancelled, params: fmt.Sprintf(`{"requestId":%d}`, c.id)}
					if got := <-s.noted; got != want {
						t.Errorf("the server got %+v, want %+v", got, want)
					}
				} else if _, err := c.end.Write([]byte("x")); err == nil || len(s.noted) > 0 {
					t.Errorf("%d notifications, and the connection is open: %t, want none and its end", len(s.noted), err == nil)
				}
				if s.link.Err() != nil {
					t.Errorf("Err() = %v, want the link to go on", s.link.Err())
				}
			})
		})
	}
}

func TestWhatIsNotSentAsARequest(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	l := mustLink(t, u, "web", Peer{Protocol: older})
	before := len(srv.seen)
	for _, method := range []string{methodCall, methodInitialize, methodDiscover, ""} {
		if _, err := l.Request(t.Context(), method, nil, nil); err == nil {
			t.Errorf("Request(%q) = nil error, want it refused", method)
		}
	}
	for _, params := range []string{`[]`, `7`, ``, `{},"method":"tools/call","x":{}`, `{"a":1,"a":2}`, `{"_meta":{"io.modelcontextprotocol/clientInfo2":1}}`, `{"_meta":7}`} {
		if _, err := l.Request(t.Context(), "prompts/get", []byte(params), nil); err == nil {
			t.Errorf("Request(%s) = nil error, want it refused", params)
		}
	}
	for _, method := range []string{methodCall, ""} {
		if err := l.Notify(t.Context(), method, nil); err == nil {
			t.Errorf("Notify(%q) = nil error, want it refused", method)
		}
	}
	if err := l.Notify(t.Context(), "notifications/x", []byte(`{},"method":"tools/call"`)); err == nil {
		t.Error("Notify(params that are more) = nil error, want it refused")
	}
	for _, answer := range [][2]string{{"", ""}, {"{}", "{}"}, {`{},"x":1`, ""}, {`{"a":1,"a":2}`, ""}, {"", "7"}, {"", "{"}} {
		var result, failed jsontext.Value
		if answer[0] != "" {
			result = jsontext.Value(answer[0])
		}
		if answer[1] != "" {
			failed = jsontext.Value(answer[1])
		}
		if err := l.Answer(t.Context(), []byte("1"), result, failed); err == nil {
			t.Errorf("Answer(%q) = nil error, want it refused", answer)
		}
	}
	if l.Err() != nil || len(srv.seen) != before {
		t.Errorf("Err() = %v, %d messages more, want none", l.Err(), len(srv.seen)-before)
	}
	// Capabilities that would be another message end the link before they leave.
	_, err := u.Link(t.Context(), "web", Peer{Protocol: older, Capabilities: jsontext.Value(`{}},"method":"tools/call","x":{"y":{}`)})
	var e *LinkError
	if !errors.As(err, &e) || e.Code != CodeInvalid || len(srv.seen) != before {
		t.Errorf("Link(capabilities that are more) = %v, want %s and nothing sent", err, CodeInvalid)
	}
}

// Requests of the latest revision say what the protocol wants: in the message and, over HTTP, in headers.
func TestModernRequests(t *testing.T) {
	var mu sync.Mutex
	got := map[string]http.Header{}
	metas := map[string]string{}
	srv := serveScript(t, modern(func(w spoken) []string { return []string{failure(w.id, -32601)} })(), false)
	srv.intercept = func(_ http.ResponseWriter, r *http.Request, w spoken) bool {
		mu.Lock()
		defer mu.Unlock()
		got[w.method], metas[w.method] = r.Header, string(wire.Member([]byte(w.params), "_meta"))
		return false
	}
	s := srv.server()
	s.Headers = []Header{{"x-key", "k"}}
	u := upstreams(t, Limits{}, s)
	l := mustLink(t, u, "web", Peer{Protocol: newer, Capabilities: jsontext.Value(`{"elicitation":{"form":{}}}`)})
	c := callByListing(t, l, `{}`)
	c.Meta = jsontext.Value(`{"traceparent":"00","progressToken":"p","io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/clientInfo":"forged"}`)
	c.Extra = jsontext.Value(`{"inputResponses":{"a":1},"requestState":"s"}`)
	c.Header = map[string]string{"Mcp-Param-Region": "eu"}
	if r := l.Call(t.Context(), c, nil); r.Effect != EffectDone {
		t.Fatalf("Call() = %+v, want done", r)
	}
	if _, err := l.Request(t.Context(), "resources/read", []byte(`{"uri":"x://y"}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Request(t.Context(), "prompts/list", nil, nil); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, l.Notify(t.Context(), "notifications/roots/list_changed", nil))
	const hop = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`
	mu.Lock()
	defer mu.Unlock()
	for _, tt := range []struct{ method, name, meta string }{
		{methodDiscover, "", hop + `}`},
		{methodList, "", hop + `}`},
		{methodCall, "echo", `{"progressToken":3,` + hop[1:] + `,"traceparent":"00","io.modelcontextprotocol/logLevel":"info"}`},
		{"resources/read", "x://y", hop + `}`},
		{"prompts/list", "", hop + `}`},
		{"notifications/roots/list_changed", "", ""},
	} {
		h := got[tt.method]
		if h.Get(protocolHeader) != newer || h.Get(methodHeader) != tt.method || h.Get(nameHeader) != tt.name || h.Get("X-Key") != "k" ||
			h.Get(sessionHeader) != "" || (h.Get("Mcp-Param-Region") == "eu") != (tt.method == methodCall) {
			t.Errorf("headers of %s = %v, want name %q", tt.method, h, tt.name)
		}
		want := tt.meta
		if tt.method == methodCall { // a listing may have been subscribed to between: ids differ
			want = strings.Replace(want, ":3,", ":"+string(wire.Member([]byte(metas[methodCall]), tokenMember))+",", 1)
		}
		if metas[tt.method] != want {
			t.Errorf("_meta of %s = %s, want %s", tt.method, metas[tt.method], want)
		}
	}
}

// Over one stream for all a message belongs to the request that it names, or to the only one that it can belong to.
func TestOwnersOfMessages(t *testing.T) {
	heeding := func(wire.Message) {}
	call := &query{id: 3, method: methodCall, on: heeding, token: jsontext.Value("1")}
	prompt := &query{id: 4, method: "prompts/get", on: heeding}
	listing := &query{id: 5, method: methodList}
	news := &query{id: 6, method: methodListen, on: heeding}
	note := wire.Message{Method: "notifications/message", Params: jsontext.Value(`{}`)}
	naming := func(method, id string) wire.Message {
		if method == noteProgress {
			return wire.Message{Method: method, Params: jsontext.Value(`{"progressToken":` + id + `}`)}
		}
		return wire.Message{Method: method, Params: jsontext.Value(`{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}`)}
	}
	asks := wire.Message{ID: jsontext.Value("1"), Method: "roots/list"}
	for _, tt := range []struct {
		name    string
		pending []*query
		message wire.Message
		want    *query
	}{
		{"nothing-under-way", nil, note, nil},
		{"the-only-one", []*query{call}, note, call},
		{"a-request-to-the-only-one", []*query{call}, asks, call},
		{"the-only-one-beside-a-subscription", []*query{call, news}, note, call},
		{"a-subscription-alone", []*query{news}, note, nil},
		{"one-of-two", []*query{call, prompt}, note, nil},
		{"a-request-to-one-of-two", []*query{call, prompt}, asks, nil},
		{"the-links-own-alone", []*query{listing}, note, nil},
		{"beside-the-links-own", []*query{listing, call}, note, nil},
		{"progress-of-one-of-two", []*query{call, prompt}, naming(noteProgress, "3"), call},
		{"progress-of-none", []*query{call}, naming(noteProgress, "9"), nil},
		{"progress-of-a-text", []*query{call}, naming(noteProgress, `"3"`), nil},
		{"named-by-a-subscription", []*query{call, news}, naming("notifications/resources/updated", "6"), news},
		{"of-a-subscription-that-is-over", []*query{call}, naming("notifications/resources/updated", "6"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDuplex(nil)
			for _, q := range tt.pending {
				d.pending[q.id] = q
			}
			if got := d.queryOf(tt.message); got != tt.want {
				t.Errorf("queryOf() = %+v, want %+v", got, tt.want)
			}
		})
	}
}
