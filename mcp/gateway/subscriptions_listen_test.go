package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

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
	for _, modern := range []bool{false, true} {
		for _, at := range []string{"docs", ""} {
			t.Run(fmt.Sprintf("new-server-%v-at-%s", modern, at), func(t *testing.T) {
				r := newRig(t, "docs", nil)
				docs := r.servers["docs"]
				docs.modern = modern
				asked, say := docs.listening()
				docs.says("resources/subscribe", `{}`)
				docs.says(methodUnsubscribe, `{}`)
				c := r.modern(at, `{}`)
				end, answer := c.listens(`"s\/1"`, `{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1","a:1"]}`)
				want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1"},` +
					`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}}`
				if diff := cmp.Diff(want, within(t, "the acknowledgement", c.out)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				tell := func(m wire.Message) { docs.link().peer.Tell(m) }
				if modern {
					tell = func(m wire.Message) { say <- m }
					if got := within(t, "the server's subscription", asked); got != `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}` {
						t.Error(got)
					}
				} else if got := docs.received("resources/subscribe"); !slices.Equal(got, []string{`{"uri":"a:1"}`}) {
					t.Errorf("%q", got)
				}
				for _, m := range []wire.Message{{Method: notePrompts}, {Method: noteResources}, updated("a:2"), {Method: "notifications/message"}} {
					tell(m)
				}
				tell(updated("a:1"))
				want = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","n":1.0,"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1","k":1}}}`
				if diff := cmp.Diff(want, within(t, "the update", c.out)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				tell(wire.Message{Method: noteTools, Params: jsontext.Value(`{}`)})
				if got := within(t, "the change", c.out); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1"}}}` {
					t.Error(got)
				}
				end()
				if got := within(t, "the end", answer); got != `{"jsonrpc":"2.0","id":"s\/1","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s\/1","io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"}}}}` {
					t.Error(got)
				}
				if got := docs.received(methodUnsubscribe); !modern && !slices.Equal(got, []string{`{"uri":"a:1"}`}) {
					t.Errorf("%q", got)
				}
			})
		}
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
			r := newRig(t, "docs", func(o *Options) { o.Servers[0].Expose = tc.expose })
			r.servers["docs"].caps = tc.caps
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
	r := newRig(t, "docs", nil)
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
		r := newRig(t, "docs", nil)
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
		docs.link().peer.Tell(wire.Message{Method: noteTools})
		if got := <-c.out; !strings.Contains(got, noteTools) {
			t.Error(got)
		}
		end()
		<-answer
		r.endForwarded()
	})
}

// TestFloodsBecomeOneNotice: however often a server says the same, no more waits for a client than it subscribed to.
func TestFloodsBecomeOneNotice(t *testing.T) {
	n := newSubscription(jsontext.Value(`1`), filter{tools: true, uris: []string{"a:1"}}, func(b []byte) []byte { return b })
	for i := range 1000 {
		n.add(wire.Message{Method: noteTools})
		n.add(wire.Message{Method: noteUpdated, Params: jsontext.Value(fmt.Sprintf(`{"uri":"a:1","n":%d}`, i))})
		n.add(wire.Message{Method: noteUpdated, Params: jsontext.Value(fmt.Sprintf(`{"uri":"a:%d"}`, i+2))})
	}
	got := n.take()
	if len(got) != 2 || !strings.Contains(string(got[1]), `"n":999`) {
		t.Errorf("%q", got)
	}
	if got := n.take(); len(got) != 0 {
		t.Errorf("again: %q", got)
	}
}

// TestSessionsHearOfServersWithoutSessions: what such a server says only over subscriptions reaches a client that has a session.
func TestSessionsHearOfServersWithoutSessions(t *testing.T) {
	r := newRig(t, "docs", nil)
	docs := r.servers["docs"]
	docs.modern = true
	asked, say := docs.listening()
	c := r.legacy("docs", `{}`)
	if got := within(t, "the first subscription", asked); got != `{"notifications":{"promptsListChanged":true,"resourcesListChanged":true}}` {
		t.Error(got)
	}
	say <- wire.Message{Method: notePrompts, Params: jsontext.Value(`{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}`)}
	if got := c.pushed(); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{}}}` {
		t.Error(got)
	}
	if got := c.ask("resources/subscribe", `{"uri":"a:1"}`); got != `{"jsonrpc":"2.0","id":7,"result":{}}` {
		t.Error(got)
	}
	if got := within(t, "the second subscription", asked); !strings.Contains(got, `"resourceSubscriptions":["a:1"]`) {
		t.Error(got)
	}
	say <- wire.Message{Method: noteUpdated, Params: jsontext.Value(`{"uri":"a:1"}`)}
	if got := c.pushed(); !strings.Contains(got, `"uri":"a:1"`) {
		t.Error(got)
	}
	c.ask(methodUnsubscribe, `{"uri":"a:1"}`)
	if got := within(t, "the third subscription", asked); strings.Contains(got, "resourceSubscriptions") {
		t.Error(got)
	}
	for _, params := range []string{`{}`, `{"uri":1}`, `{"uri":""}`} {
		if got := c.ask("resources/subscribe", params); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s: %s", params, got)
		}
	}
	if want := []string{"to_server docs resources/subscribe", "to_server docs resources/unsubscribe"}; !cmp.Equal(want, r.passed[:2]) {
		t.Errorf("the record: %q", r.passed)
	}
}

func TestWatchedResourcesAreBounded(t *testing.T) {
	r := newRig(t, "docs", nil)
	c := r.legacy("docs", `{}`)
	for i := range maxSubscribed {
		if !c.session.setWatch("docs", fmt.Sprint(i), true) {
			t.Fatalf("number %d was refused", i)
		}
	}
	if c.session.setWatch("docs", "one more", true) {
		t.Error("one past the limit was taken")
	}
	if !c.session.setWatch("docs", "7", true) {
		t.Error("one that is watched already was refused")
	}
}

func TestNamesOfWatchedResourcesAreBounded(t *testing.T) {
	r := newRig(t, "docs mail", nil)
	c := r.legacy("", `{}`)
	watches := func(method string, server int, size int) bool {
		return c.session.setWatch(r.options.Servers[server].Name, strings.Repeat("x", size), method == methodSubscribe)
	}
	const half = maxWatchedBytes / 2
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
		{"in-its-place", "resources/subscribe", 1, half - 1, true},
	} {
		if got := watches(step.method, step.server, step.size); got != step.want {
			t.Errorf("%s: %t", step.name, got)
		}
	}
}
