package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

func newTestSubscription(f filter) *subscription {
	return &subscription{id: jsontext.Value(`1`), filter: f, wake: make(chan struct{}, 1)}
}

// listens opens a subscription. It returns what ends it and what it was answered with.
func (c *client) listens(id, filter string) (end func(), answer chan string) {
	ctx, cancel := context.WithCancel(context.Background())
	answer = make(chan string, 1)
	q := c.request(id, methodListen, `{"_meta":`+c.meta("")+`,"notifications":`+filter+`}`)
	go func() { answer <- string(c.dispatch(ctx, q)) }()
	return cancel, answer
}

// listening makes a server without sessions take subscriptions: what it is sent, and how to say something.
func (p *played) listening() (asked chan string, say chan wire.Message) {
	asked, say = make(chan string, 8), make(chan wire.Message)
	p.plays(methodListen, func(ctx context.Context, l *playedLink, params jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		asked <- string(params)
		on(wire.Message{Method: noteSubscribed, Params: jsontext.Value(`{"notifications":{}}`)})
		for {
			select {
			case <-ctx.Done():
				return upstream.Reply{}, ctx.Err()
			case <-l.done:
				return upstream.Reply{}, &upstream.LinkError{Code: upstream.CodeUnreachable, Reason: "gone"}
			case m := <-say:
				on(m)
			}
		}
	})
	return asked, say
}

func TestSubscriptions(t *testing.T) {
	updated := func(uri string) wire.Message {
		return wire.Message{Method: noteUpdated, Params: jsontext.Value(`{"uri":"` + uri + `","n":1.0,"_meta":{"k":1,"io.modelcontextprotocol/subscriptionId":99}}`)}
	}
	for _, at := range []string{"docs", ""} {
		t.Run("at-"+at, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			docs := r.servers["docs"]
			docs.modern = true
			asked, say := docs.listening()
			c := r.modern(at, `{}`)
			end, answer := c.listens(`"s\/1"`, `{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1","a:1"]}`)
			want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1"},` +
				`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}}`
			if diff := cmp.Diff(want, within(t, "the acknowledgement", c.out)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := within(t, "the server's subscription", asked); got != `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}` {
				t.Error(got)
			}
			for _, m := range []wire.Message{{Method: notePrompts}, {Method: noteResources}, updated("a:2"), {Method: noteMessage}} {
				say <- m
			}
			say <- updated("a:1")
			want = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1"},"uri":"a:1"}}`
			if diff := cmp.Diff(want, within(t, "the update", c.out)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			say <- wire.Message{Method: noteTools, Params: jsontext.Value(`{}`)}
			if got := within(t, "the change", c.out); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1"}}}` {
				t.Error(got)
			}
			end()
			if got := within(t, "the end", answer); got != `{"jsonrpc":"2.0","id":"s\/1","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1","io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"}}}}` {
				t.Error(got)
			}
		})
	}
}

// TestChangedListsOfServersWithSessions: a stateless client is notified of them, but cannot subscribe to resources.
func TestChangedListsOfServersWithSessions(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	c := r.modern("docs", `{}`)
	end, answer := c.listens(`7`, `{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:1"]}`)
	if got := within(t, "the acknowledgement", c.out); !strings.Contains(got, `"notifications":{"toolsListChanged":true,"promptsListChanged":true}}`) {
		t.Error(got)
	}
	docs.link().peer.OnMessage(wire.Message{Method: noteUpdated, Params: jsontext.Value(`{"uri":"a:1"}`)})
	for _, method := range []string{notePrompts, noteTools} {
		docs.link().peer.OnMessage(wire.Message{Method: method})
		if got := within(t, method, c.out); !strings.Contains(got, method) {
			t.Error(got)
		}
	}
	end()
	within(t, "the end", answer)
	if got := docs.received(methodSubscribe); len(got) > 0 {
		t.Errorf("the server was sent %q", got)
	}
}

func TestSubscriptionsAgreeToWhatIsExposedAndOffered(t *testing.T) {
	const all = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"],"future":true}`
	for _, tc := range []struct {
		name, caps, filter, want string
		expose                   Expose
	}{
		{"all", allCaps, all, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}`, everything},
		{"not-offered", `{"prompts":{},"resources":{"subscribe":false}}`, all, `{"toolsListChanged":true}`, everything},
		{"only-prompts-exposed", allCaps, all, `{"promptsListChanged":true}`, ExposePrompts},
		{"nothing-exposed", allCaps, all, `{}`, 0},
		{"nothing-wanted", allCaps, `{}`, `{}`, everything},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose = tc.expose })
			r.servers["docs"].caps, r.servers["docs"].modern = tc.caps, true
			c := r.modern("docs", `{}`)
			end, answer := c.listens(`7`, tc.filter)
			defer end()
			if got := within(t, "the acknowledgement", c.out); !strings.Contains(got, `"notifications":`+tc.want+`}`) {
				t.Error(got)
			}
			if tc.want == `{}` {
				within(t, "the end: there is nothing to say", answer)
			}
		})
	}
	r := newFixture(t, "docs", nil)
	for _, params := range []string{`{}`, `{"notifications":[]}`, `{"notifications":{"resourceSubscriptions":[1]}}`, `{"notifications":{"resourceSubscriptions":{}}}`} {
		if got := r.modern("docs", `{}`).ask(methodListen, params); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s: %s", params, got)
		}
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	for _, tc := range []struct {
		name   string
		n      int
		passes bool
	}{{"at-the-limit", maxSubscribed, true}, {"one-past", maxSubscribed + 1, false}} {
		var uris []string
		for i := range tc.n {
			uris = append(uris, fmt.Sprintf(`"a:%d"`, i))
		}
		f, failed := readFilter(jsontext.Value(`{"notifications":{"resourceSubscriptions":[` + strings.Join(uris, ",") + `]}}`))
		if passes := failed == nil; passes != tc.passes || passes && len(f.uris) != tc.n {
			t.Errorf("%s: %s", tc.name, failed)
		}
	}
}

// TestSubscriptionsFindANewLink: when a link ends, the subscription goes on over another, and is told that anything may have changed.
func TestSubscriptionsFindANewLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, "docs", nil)
		docs := r.servers["docs"]
		c := r.modern("docs", `{}`)
		end, answer := c.listens(`7`, `{"toolsListChanged":true}`)
		<-c.out
		docs.link().Close()
		if got := <-c.out; !strings.Contains(got, noteTools) {
			t.Error(got)
		}
		synctest.Wait()
		if len(docs.links) != 2 {
			t.Fatalf("there were %d links", len(docs.links))
		}
		docs.link().peer.OnMessage(wire.Message{Method: noteTools})
		if got := <-c.out; !strings.Contains(got, noteTools) {
			t.Error(got)
		}
		end()
		<-answer
		r.links.closeAll()
	})
}

// TestFloodsBecomeOneNotice: however often a server says the same, no more waits for a client than it subscribed to.
func TestFloodsBecomeOneNotice(t *testing.T) {
	n := newTestSubscription(filter{lists: map[string]bool{noteTools: true}, uris: []string{"a:1"}})
	for i := range 1000 {
		n.receive(wire.Message{Method: noteTools})
		n.receive(wire.Message{Method: noteUpdated, Params: jsontext.Value(fmt.Sprintf(`{"uri":"a:1","n":%d}`, i))})
		n.receive(wire.Message{Method: noteUpdated, Params: jsontext.Value(fmt.Sprintf(`{"uri":"a:%d"}`, i+2))})
	}
	got := n.takeWaiting()
	if len(got) != 2 || !strings.Contains(string(got[1]), `"uri":"a:1"`) {
		t.Errorf("%q", got)
	}
	if got := n.takeWaiting(); len(got) != 0 {
		t.Errorf("again: %q", got)
	}
}

// TestSessionsCannotSubscribeAtStatelessServers: they are told so.
func TestSessionsCannotSubscribeAtStatelessServers(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.modern = true
	c := r.legacy("docs", `{}`)
	if got := c.ask(methodSubscribe, `{"uri":"a:1"}`); !strings.Contains(got, `"code":-32601`) || !strings.Contains(got, "2026-07-28") {
		t.Error(got)
	}
	q := c.request(`1`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	q.Session = nil
	if got := string(r.dispatch(t.Context(), q)); strings.Contains(got, "subscribe") || !strings.Contains(got, `"resources":{},"tools":{"listChanged":true}`) {
		t.Errorf("the session is offered %s, want resources without subscriptions and notifications", got)
	}
	if len(docs.got) > 0 || len(r.passed) > 0 {
		t.Errorf("the server was sent %q, and the record has %q, want nothing", docs.got, r.passed)
	}
}

func TestNamesOfWatchedResourcesAreBounded(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	c := r.legacy("", `{}`)
	watches := func(method string, server int, size int) bool {
		return c.session.setWatch(r.options.Servers[server].Name, strings.Repeat("x", size), method == methodSubscribe)
	}
	const half = maxWatchedBytes/2 - watchOverhead
	for _, step := range []struct {
		name   string
		method string
		server int
		size   int
		want   bool
	}{
		{"half", "resources/subscribe", 0, half, true},
		{"one-past-at-another-server", "resources/subscribe", 1, half + 1, false},
		{"at-the-limit-at-another-server", "resources/subscribe", 1, half, true},
		{"again", "resources/subscribe", 0, half, true},
		{"one-more", "resources/subscribe", 0, 1, false},
		{"no-more", methodUnsubscribe, 0, half, true},
		{"in-its-place", "resources/subscribe", 1, half - watchOverhead, true},
	} {
		if got := watches(step.method, step.server, step.size); got != step.want {
			t.Errorf("%s: %t", step.name, got)
		}
	}
}
