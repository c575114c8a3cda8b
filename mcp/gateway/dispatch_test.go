package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

func TestHandshakes(t *testing.T) {
	some := func(o *Options) { o.Servers[0].Expose = DefaultExpose | ExposePrompts }
	for _, tc := range []struct {
		name   string
		change func(*Options)
		params string
		want   string
	}{
		{"newest", nil, `{"protocolVersion":"2025-11-25","capabilities":{}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},` +
				`"extensions":{"io.modelcontextprotocol/tasks":{}},"logging":{},"prompts":{"listChanged":true},` +
				`"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"pgfsm","version":"1"}}}`},
		{"oldest-some-exposed-no-tasks", func(o *Options) { some(o); o.Tasks = false }, `{"protocolVersion":"2024-11-05","capabilities":{}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"prompts":{"listChanged":true},` +
				`"tools":{"listChanged":true}},"serverInfo":{"name":"pgfsm","version":"1"}}}`},
		{"unknown-revision-gets-the-newest-with-sessions", func(o *Options) { o.Servers[0].Expose = 0 }, `{"protocolVersion":"2026-07-28"}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"pgfsm","version":"1"}}}`},
		{"no-revision", nil, `{}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"\"protocolVersion\" is missing"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, at := range []string{"docs", ""} {
				r := newFixture(t, "docs", tc.change)
				c := &client{fixture: r, from: Identity{Name: "ann"}, at: at}
				got := string(r.dispatch(context.Background(), c.request(`1`, "initialize", tc.params)))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("at %q (-want +got):\n%s", at, diff)
				}
			}
		})
	}
}

func TestDiscover(t *testing.T) {
	r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose, o.Tasks = ExposeTools|ExposeResources, false })
	r.servers["docs"].modern = true
	want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"}},` +
		`"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
		`"capabilities":{"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"ttlMs":60000,"cacheScope":"private"}}`
	if diff := cmp.Diff(want, r.modern("docs", `{}`).ask("server/discover", `{}`)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestServersThatAreDownOfferNothing(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	r.servers["docs"].down, r.servers["mail"].down = true, true
	for _, at := range []string{"docs", ""} {
		got := r.modern(at, `{}`).ask("server/discover", `{}`)
		if !strings.Contains(got, `"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"tools":{"listChanged":true}}`) {
			t.Errorf("at %q: %s", at, got)
		}
		if got := r.modern(at, `{}`).ask("tools/list", `{}`); !strings.Contains(got, `"tools":[]`) {
			t.Errorf("at %q: %s", at, got)
		}
	}
}

// TestNothingPassesUnlessExposed goes through the whole table: every method of clients, in each era, at each kind of endpoint, with
// nothing exposed, with everything but what it needs, and with just that.
func TestNothingPassesUnlessExposed(t *testing.T) {
	refused := func(answer string) bool { return strings.Contains(answer, `"error":{"code":-32601,`) }
	for _, m := range methods {
		if m.from != fromClient || m.notification || m.name == "initialize" || m.name == methodListen {
			continue
		}
		for _, era := range []revisions{stateful, stateless} {
			for _, at := range []string{"docs", ""} {
				for _, e := range []struct {
					name   string
					expose Expose
					open   bool
				}{
					{"nothing", 0, m.needs == 0}, {"all-else", everything &^ m.needs, m.needs == 0}, {"just-that", m.needs, true},
				} {
					t.Run(strings.ReplaceAll(m.name, "/", "-")+map[revisions]string{stateful: "-stateful-", stateless: "-stateless-"}[era]+e.name, func(t *testing.T) {
						r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose = e.expose })
						r.servers["docs"].says(m.name, `{}`)
						c := r.modern(at, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
						if era == stateful {
							c = r.legacy(at, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
						}
						before := len(r.passed)
						answer := c.ask(m.name, `{"name":"docs__echo","uri":"a:b","level":"info","taskId":"t","ref":{"type":"ref/resource","uri":"a:b"}}`)
						if open := e.open && m.revisions&era != 0; refused(answer) == open {
							t.Fatalf("open %v: %s", open, answer)
						} else if !open && (len(r.servers["docs"].received(m.name)) > 0 || len(r.passed) != before) {
							t.Errorf("it was refused, and passed: %q", r.servers["docs"].got)
						}
					})
				}
			}
		}
	}
}

func TestUnknownMethodsAreRefused(t *testing.T) {
	r := newFixture(t, "docs", nil)
	for _, method := range []string{"tools/run", "tasks/list", "tasks/result", "notifications/initialized", "sampling/createMessage", "roots/list", "TOOLS/LIST", "$/x"} {
		for _, c := range []*client{r.modern("docs", `{}`), r.legacy("", `{}`)} {
			if got := c.ask(method, `{}`); !strings.Contains(got, `"code":-32601`) {
				t.Errorf("%s: %s", method, got)
			}
		}
	}
	c := &client{fixture: r}
	if got := c.ask("tools/list", `{}`); !strings.Contains(got, `"code":-32600`) || !strings.Contains(got, "initialize") {
		t.Errorf("before initialize: %s", got)
	}
}

// TestServersMayAskOnlyWhatIsExposed does the same for what servers say: during a request, and outside.
func TestServersMayAskOnlyWhatIsExposed(t *testing.T) {
	can := `{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}`
	for _, m := range methods {
		if m.from != fromServer || m.handler == byFront {
			continue
		}
		for _, inside := range []bool{true, false} {
			for _, e := range []struct {
				name   string
				expose Expose
				open   bool
			}{{"all-else", everything &^ m.needs, false}, {"just-that", m.needs | ExposePrompts, true}} {
				t.Run(strings.ReplaceAll(m.name, "/", "-")+map[bool]string{true: "-inside-", false: "-outside-"}[inside]+e.name, func(t *testing.T) {
					if m.name == "notifications/cancelled" || m.name == "notifications/progress" && !inside {
						t.Skip("it needs a request that it belongs to; see the tests of those")
					}
					expose := e.expose
					if m.needs == ExposePrompts && !e.open { // prompts/get is what the client asks meanwhile
						t.Skip("nothing is under way then")
					}
					r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose = expose })
					docs := r.servers["docs"]
					c := r.legacy("docs", can)
					words := wire.Message{Method: m.name, Params: jsontext.Value(`{"uri":"a:b","progressToken":1,"level":"info"}`)}
					if !m.notification {
						words.ID = jsontext.Value(`"s1"`)
					}
					docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
						if inside {
							on(words)
						} else {
							l.peer.OnMessage(words)
						}
						return upstream.Reply{Result: jsontext.Value(`{"messages":[]}`)}, nil
					})
					c.ask("prompts/get", `{"name":"p"}`)
					if !m.notification && !e.open {
						got := within(t, "the refusal", docs.answers)
						if !strings.HasPrefix(got, `"s1" error {"code":-32601,`) {
							t.Error(got)
						}
					}
					if !e.open {
						if all := append(c.received(), c.waiting()...); len(all) > 0 {
							t.Errorf("the client was told %q", all)
						}
						return
					}
					var got string
					if all := c.received(); inside && len(all) == 1 {
						got = all[0]
					} else {
						got = c.pushed()
					}
					if !strings.Contains(got, `"method":"`+m.name+`"`) || !m.notification && !strings.Contains(got, `"id":"pgfsm-1"`) {
						t.Error(got)
					}
				})
			}
		}
	}
}

// waiting is what was said to a session outside of requests so far.
func (c *client) waiting() (all []string) {
	events, _ := c.hear.Read()
	for _, e := range events {
		all = append(all, string(e.Data))
	}
	return all
}
