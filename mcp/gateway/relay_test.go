package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

func TestRelayedRequestsPassUntouched(t *testing.T) {
	const params = `{"uri":"a:\/b","future":[1.0,1e400,12345678901234567890123],"_meta":{"traceparent":"00-1","x\/y": {"z" : 1}}}`
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.says("resources/read", `{"contents":[`+odd+`],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"},"own":1.0}}`)
	c := r.legacy("docs", `{}`)
	got := c.ask("resources/read", strings.Replace(params, `"traceparent"`, `"io.modelcontextprotocol/clientInfo":{"name":"c"},"traceparent"`, 1))
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":7,"result":{"contents":[`+odd+`],"_meta":{"own":1.0}}}`, got); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{params}, docs.received("resources/read")); diff != "" {
		t.Errorf("the params (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"to_server docs resources/read"}, r.passed); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	m := r.modern("docs", `{}`)
	got = m.ask("resources/read", `{"uri":"a:b"}`)
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[`) ||
		!strings.Contains(got, `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"},"own":1.0}`) {
		t.Error(got)
	}
	if got := docs.received("resources/read")[1]; got != `{"_meta":{},"uri":"a:b"}` {
		t.Errorf("a stateless client's params: %s", got)
	}
}

func TestErrorsOfServersPassUntouched(t *testing.T) {
	const failed = `{"code":-32602,"message":"Resource not found","data":{"uri":"a:b", "n":1.0}}`
	r := newFixture(t, "docs", nil)
	r.servers["docs"].plays("resources/read", func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
		return upstream.Reply{Error: jsontext.Value(failed)}, nil
	})
	for _, c := range []*client{r.modern("docs", `{}`), r.legacy("docs", `{}`)} {
		if got := c.ask("resources/read", `{"uri":"a:b"}`); got != `{"jsonrpc":"2.0","id":7,"error":`+failed+`}` {
			t.Error(got)
		}
	}
	r.servers["docs"].plays("resources/read", func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
		return upstream.Reply{}, &upstream.LinkError{Code: upstream.CodeDied, Reason: "it fell over"}
	})
	want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"server docs: it fell over","data":{"code":"server_died","server":"docs"}}}`
	if got := r.modern("docs", `{}`).ask("resources/read", `{"uri":"a:b"}`); got != want {
		t.Error(got)
	}
}

func TestWhatCannotBeRecordedDoesNotPass(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.says("resources/read", `{}`)
	docs.says("prompts/get", `{}`)
	c := r.legacy("docs", `{"roots":{}}`)
	r.refuse = true
	if got := c.ask("resources/read", `{"uri":"a:b"}`); !strings.Contains(got, `"code":-32603`) || len(docs.received("resources/read")) > 0 {
		t.Errorf("a request: %s", got)
	}
	l := docs.link()
	if l == nil {
		t.Fatal("no link")
	}
	l.peer.OnMessage(wire.Message{ID: jsontext.Value(`5`), Method: "roots/list"})
	if got := within(t, "the refusal", docs.answers); !strings.HasPrefix(got, `5 error {"code":-32603`) {
		t.Errorf("a server's request: %s", got)
	}
	r.refuse = false
	l.peer.OnMessage(wire.Message{ID: jsontext.Value(`6`), Method: "roots/list"})
	ours := wire.TextMember([]byte(c.pushed()), "id")
	r.refuse = true
	q := c.request(`"`+ours+`"`, "", "")
	q.Result = jsontext.Value(`{"roots":[]}`)
	r.dispatch(context.Background(), q)
	if got := within(t, "the refusal", docs.answers); !strings.HasPrefix(got, `6 error {"code":-32603`) {
		t.Errorf("a client's answer: %s", got)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	r := newFixture(t, "docs", func(o *Options) {
		o.Mask = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "***")) }
	})
	docs := r.servers["docs"]
	docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		on(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"info","data":"hunter2"}`)})
		on(wire.Message{ID: jsontext.Value(`1`), Method: "roots/list", Params: jsontext.Value(`{"x":"hunter2"}`)})
		on(wire.Message{Method: "notifications/cancelled", Params: jsontext.Value(`{"requestId":1,"reason":"hunter2"}`)})
		return upstream.Reply{Result: jsontext.Value(`{"description":"hunter2"}`)}, nil
	})
	docs.says("prompts/list", `{"prompts":[{"name":"hunter2"}]}`)
	c := r.legacy("docs", `{"roots":{}}`)
	all := append(c.received(), c.ask("prompts/get", `{"name":"p"}`), c.ask("prompts/list", `{}`), r.legacy("", `{}`).ask("prompts/list", `{}`))
	if all = append(all, c.received()...); len(all) != 6 || strings.Contains(strings.Join(all, ""), "hunter2") {
		t.Errorf("%q", all)
	}
}

func TestPersonalDataIsRemovedFromWhatServersSend(t *testing.T) {
	r := newFixture(t, "docs", func(o *Options) {
		o.Redact = func(server string, b []byte) ([]byte, string) {
			if server != "docs" || strings.Contains(string(b), "withheld") {
				return nil, "a test says so"
			}
			return []byte(strings.ReplaceAll(string(b), "ann@x", "***")), ""
		}
	})
	for _, tt := range []struct {
		word, answer string
		messages     int // that the client gets beside the answer
	}{{"ann@x", "***", 3}, {"withheld", "a test says so", 0}} {
		docs := r.servers["docs"]
		docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
			on(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"info","data":"` + tt.word + `"}`)})
			on(wire.Message{ID: jsontext.Value(`1`), Method: "roots/list", Params: jsontext.Value(`{"x":"` + tt.word + `"}`)})
			on(wire.Message{Method: "notifications/cancelled", Params: jsontext.Value(`{"requestId":1,"reason":"` + tt.word + `"}`)})
			return upstream.Reply{Result: jsontext.Value(`{"description":"` + tt.word + `"}`)}, nil
		})
		c := r.legacy("docs", `{"roots":{}}`)
		c.received()
		answer, pushed := c.ask("prompts/get", `{"name":"p"}`), c.received()
		all := strings.Join(append(pushed, answer), "")
		if len(pushed) != tt.messages || strings.Contains(all, "ann@x") || strings.Contains(all, `"withheld"`) || !strings.Contains(answer, tt.answer) {
			t.Errorf("%s: %s %q", tt.word, answer, pushed)
		}
		docs.plays("prompts/get", func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
			return upstream.Reply{Error: jsontext.Value(`{"code":1,"message":"` + tt.word + `"}`)}, nil
		})
		docs.says("resources/list", `{"resources":[{"uri":"`+tt.word+`"}]}`)
		all = c.ask("prompts/get", `{"name":"p"}`) + r.legacy("", `{}`).ask("resources/list", `{}`)
		if strings.Contains(all, "ann@x") || strings.Contains(all, `"withheld"`) {
			t.Errorf("%s: %s", tt.word, all)
		}
	}
}

func TestRequestsOfServersAreAnsweredOnceByTheirSession(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	can := `{"sampling":{},"elicitation":{},"roots":{}}`
	asks := wire.Message{ID: jsontext.Value(`41`), Method: "sampling/createMessage",
		Params: jsontext.Value(`{"messages":[1.0],"_meta":{"io.modelcontextprotocol/x":1,"k":1}}`)}
	docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		on(asks)
		return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
	})
	ann, bob := r.legacy("docs", can), r.legacy("docs", can)
	ann.ask("prompts/get", `{"name":"p"}`)
	want := `{"jsonrpc":"2.0","id":"pgfsm-1","method":"sampling/createMessage","params":{"messages":[1.0],"_meta":{"k":1}}}`
	if diff := cmp.Diff([]string{want}, ann.received()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	answer := func(c *client, id, result string) {
		q := c.request(id, "", "")
		q.Result = jsontext.Value(result)
		if got := r.dispatch(context.Background(), q); got != nil {
			t.Errorf("an answer was answered: %s", got)
		}
	}
	answer(bob, `"pgfsm-1"`, `{"forged":1}`)
	answer(ann, `"pgfsm-2"`, `{"unknown":1}`)
	answer(ann, `41`, `{"theirs":1}`)
	answer(ann, `"pgfsm\u002d1"`, `{"content":1.0}`)
	answer(ann, `"pgfsm-1"`, `{"again":1}`)
	if got := within(t, "the answer", docs.answers); got != `41 result {"content":1.0}` {
		t.Error(got)
	}
	select {
	case got := <-docs.answers:
		t.Errorf("a second answer: %s", got)
	default:
	}
	if want := []string{"to_server docs prompts/get", "to_client docs sampling/createMessage", "to_server docs sampling/createMessage"}; !cmp.Equal(want, r.passed) {
		t.Errorf("the record: %q", r.passed)
	}
}

func TestClientsAreAskedOnlyWhatTheyDeclare(t *testing.T) {
	for _, tc := range []struct {
		name, can, method, params string
		asked                     bool
	}{
		{"sampling", `{"sampling":{}}`, "sampling/createMessage", `{}`, true},
		{"no-sampling", `{"roots":{}}`, "sampling/createMessage", `{}`, false},
		{"sampling-with-tools", `{"sampling":{"tools":{}}}`, "sampling/createMessage", `{"tools":[]}`, true},
		{"sampling-without-tools", `{"sampling":{}}`, "sampling/createMessage", `{"tools":[]}`, false},
		{"form", `{"elicitation":{}}`, "elicitation/create", `{"message":"x"}`, true},
		{"form-declared", `{"elicitation":{"form":{}}}`, "elicitation/create", `{"mode":"form"}`, true},
		{"form-of-a-client-of-urls", `{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"form"}`, false},
		{"url", `{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"url"}`, true},
		{"url-of-a-client-of-forms", `{"elicitation":{}}`, "elicitation/create", `{"mode":"url"}`, false},
		{"roots", `{"roots":{}}`, "roots/list", ``, true},
		{"no-roots", `{}`, "roots/list", ``, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			docs := r.servers["docs"]
			c := r.legacy("docs", tc.can)
			m := wire.Message{ID: jsontext.Value(`"a"`), Method: tc.method}
			if tc.params != "" {
				m.Params = jsontext.Value(tc.params)
			}
			docs.link().peer.OnMessage(m)
			if tc.asked {
				if got := c.pushed(); !strings.Contains(got, `"method":"`+tc.method+`"`) {
					t.Error(got)
				}
			} else if got := within(t, "the refusal", docs.answers); !strings.HasPrefix(got, `"a" error {"code":-32601,`) || len(c.waiting()) > 0 {
				t.Error(got)
			}
		})
	}
}

// TestStatelessClientsAreNotAskedOutsideOfPendingRequests: there is no result in which they could be.
func TestStatelessClientsAreNotAskedOutsideOfPendingRequests(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	docs.plays("completion/complete", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		on(wire.Message{ID: jsontext.Value(`9`), Method: "roots/list"})
		on(wire.Message{Method: "notifications/resources/updated", Params: jsontext.Value(`{"uri":"a:b"}`)})
		on(wire.Message{Method: "notifications/tools/list_changed"})
		return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
	})
	c := r.modern("docs", `{"roots":{},"sampling":{}}`)
	c.ask("completion/complete", `{}`)
	if got := within(t, "the refusal", docs.answers); !strings.HasPrefix(got, `9 error {"code":-32601,`) {
		t.Error(got)
	}
	docs.link().peer.OnMessage(wire.Message{ID: jsontext.Value(`10`), Method: "roots/list"})
	if got := within(t, "the refusal between requests", docs.answers); !strings.HasPrefix(got, `10 error {"code":-32601,`) {
		t.Error(got)
	}
	if all := c.received(); len(all) > 0 {
		t.Errorf("the client was told %q", all)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRootsChangesGoToServersThatMayKnow(t *testing.T) {
	for _, can := range []string{`{"roots":{"listChanged":true}}`, `{}`} {
		r := newFixture(t, "docs mail", func(o *Options) { o.Servers[1].Expose &^= ExposeRoots })
		c := r.legacy("", can)
		r.dispatch(context.Background(), c.request("", "notifications/roots/list_changed", ""))
		if n := len(r.servers["docs"].notes); n != 1 && can != `{}` || n != 0 && can == `{}` || len(r.servers["mail"].notes) > 0 {
			t.Errorf("%s: docs was told %d times, mail %d times", can, n, len(r.servers["mail"].notes))
		}
		if told := string(r.servers["mail"].link().peer.Capabilities); told != `{}` {
			t.Errorf("mail was told of %s", told)
		}
	}
}

func TestServersTakeTheirRequestsBack(t *testing.T) {
	r := newFixture(t, "docs", nil)
	docs := r.servers["docs"]
	c := r.legacy("docs", `{"roots":{}}`)
	docs.plays("prompts/get", func(_ context.Context, l *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		on(wire.Message{ID: jsontext.Value(`3`), Method: "roots/list"})
		on(wire.Message{Method: "notifications/cancelled", Params: jsontext.Value(`{"requestId":4}`)})
		on(wire.Message{Method: "notifications/cancelled", Params: jsontext.Value(`{"requestId":3,"reason":"a\/b"}`)})
		on(wire.Message{Method: "notifications/cancelled", Params: jsontext.Value(`{"requestId":3}`)})
		return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
	})
	c.ask("prompts/get", `{"name":"p"}`)
	want := []string{`{"jsonrpc":"2.0","id":"pgfsm-1","method":"roots/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"pgfsm-1","reason":"a\/b"}}`}
	if diff := cmp.Diff(want, c.received()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCancellation(t *testing.T) {
	for _, tc := range []struct {
		name, at, id, requestID string
		expose                  Expose
		cancelled               bool
	}{
		{"number", "docs", `7`, `7`, everything, true},
		{"string", "", `"a"`, `"a"`, everything, true},
		{"number-is-no-string", "docs", `7`, `"7"`, everything, false},
		{"unknown", "docs", `7`, `8`, everything, false},
		{"not-exposed", "docs", `7`, `7`, everything &^ ExposeCancellation, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose = tc.expose })
			docs := r.servers["docs"]
			begun, end, over := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			docs.plays("prompts/get", func(ctx context.Context, _ *playedLink, _ jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
				close(begun)
				select {
				case <-ctx.Done():
					return upstream.Reply{}, ctx.Err()
				case <-end:
					return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
				}
			})
			c, other := r.legacy(tc.at, `{}`), r.legacy(tc.at, `{}`)
			go func() {
				over <- string(r.dispatch(context.Background(), c.request(tc.id, "prompts/get", `{"name":"docs__p"}`)))
			}()
			within(t, "the request", begun)
			r.dispatch(context.Background(), other.request("", "notifications/cancelled", `{"requestId":`+tc.requestID+`}`))
			r.dispatch(context.Background(), c.request("", "notifications/cancelled", `{"requestId":`+tc.requestID+`}`))
			if !tc.cancelled {
				close(end)
			}
			if got := within(t, "the answer", over); strings.Contains(got, `"code":"cancelled"`) != tc.cancelled {
				t.Error(got)
			}
		})
	}
}

func TestLogLevels(t *testing.T) {
	logs := func(r *fixture) {
		for _, p := range r.servers {
			p.says("logging/setLevel", `{}`)
			p.plays("prompts/get", func(_ context.Context, _ *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
				for _, level := range []string{"debug", "warning", "emergency", "nonsense"} {
					on(wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"` + level + `","data":1.0}`)})
				}
				return upstream.Reply{Result: jsontext.Value(`{}`)}, nil
			})
		}
	}
	received := func(c *client) (levels []string) {
		for _, m := range c.received() {
			levels = append(levels, wire.TextMember([]byte(wire.Member([]byte(m), "params")), "level"))
		}
		return levels
	}
	for _, tc := range []struct {
		name, level string
		modern      bool
		want, sent  []string
		params      string
	}{
		{"none", ``, false, nil, nil, `{"_meta":{},"name":"p"}`},
		{"warning", `"warning"`, false, []string{"warning", "emergency"}, []string{`{"level":"warning"}`}, `{"_meta":{"io.modelcontextprotocol/logLevel":"warning"},"name":"p"}`},
		{"warning-new-server", `"warning"`, true, []string{"warning", "emergency"}, nil, `{"_meta":{"io.modelcontextprotocol/logLevel":"warning"},"name":"p"}`},
		{"unknown-word", `"loud"`, true, nil, nil, `{"_meta":{},"name":"p"}`},
	} {
		t.Run("stateless-"+tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			logs(r)
			docs := r.servers["docs"]
			docs.modern = tc.modern
			c := r.modern("docs", `{}`)
			more := ""
			if tc.level != "" {
				more = `,"io.modelcontextprotocol/logLevel":` + tc.level
			}
			c.ask("prompts/get", `{"_meta":`+c.meta(more)+`,"name":"p"}`)
			if diff := cmp.Diff(tc.want, received(c)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.sent, docs.received("logging/setLevel")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{tc.params}, docs.received("prompts/get")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("session", func(t *testing.T) {
		for _, at := range []string{"docs", ""} {
			r := newFixture(t, "docs mail", nil)
			logs(r)
			docs, mail := r.servers["docs"], r.servers["mail"]
			mail.modern = true
			c := r.legacy(at, `{}`)
			if got := c.ask("logging/setLevel", `{"level":"loud"}`); !strings.Contains(got, `"code":-32602`) {
				t.Error(got)
			}
			if got := c.ask("logging/setLevel", `{"level":"error"}`); got != `{"jsonrpc":"2.0","id":7,"result":{}}` {
				t.Error(got)
			}
			if got := docs.received("logging/setLevel"); !slices.Equal(got, []string{`{"level":"error"}`}) {
				t.Errorf("docs: %q", got)
			}
			if at == "" {
				c.ask("prompts/get", `{"name":"mail__p"}`)
				if got := mail.received("prompts/get"); !slices.Equal(got, []string{`{"_meta":{"io.modelcontextprotocol/logLevel":"error"},"name":"p"}`}) || len(mail.received("logging/setLevel")) > 0 {
					t.Errorf("mail: %q", got)
				}
			}
		}
	})
}

func TestListsOfAllServersAreOne(t *testing.T) {
	r := newFixture(t, "docs mail down old", nil)
	r.servers["down"].down = true
	named := func(name string) string { return strings.Replace(odd, `{`, `{"name":"`+name+`",`, 1) }
	pages := map[string]string{"": `{"prompts":[{"name":"a","n":1.0},{"name":"b\/c"}],"nextCursor":"2"}`, "2": `{"prompts":[` + named("odd") + `,{"name":"` + strings.Repeat("x", policy.MaxJoinedName) + `"}]}`}
	r.servers["docs"].plays("prompts/list", func(_ context.Context, _ *playedLink, params jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
		return upstream.Reply{Result: jsontext.Value(pages[wire.TextMember(params, "cursor")])}, nil
	})
	r.servers["mail"].says("prompts/list", `{"prompts":[{"name":"a"}]}`)
	got := r.legacy("", `{}`).ask("prompts/list", `{}`)
	want := `{"jsonrpc":"2.0","id":7,"result":{"prompts":[{"name":"docs__a","n":1.0},{"name":"docs__b/c"},` + named("docs__odd") + `,{"name":"mail__a"}]}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.servers["docs"].says("resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"a:{b}"}]}`)
	want = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"}},` +
		`"resourceTemplates":[{"uriTemplate":"a:{b}"}],"ttlMs":0,"cacheScope":"private"}}`
	if diff := cmp.Diff(want, r.modern("", `{}`).ask("resources/templates/list", `{}`)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.modern("", `{}`).ask("resources/list", `{"cursor":"2"}`); !strings.Contains(got, `"code":-32602`) {
		t.Error(got)
	}
}

// TestTheEmptyCursorOfAList shows that the empty text ends a list of a server up to 2025-11-25, and is a cursor after that. Malformed entries are
// left out.
func TestTheEmptyCursorOfAList(t *testing.T) {
	for _, modern := range []bool{false, true} {
		r := newFixture(t, "docs", nil)
		docs := r.servers["docs"]
		docs.modern = modern
		docs.plays("prompts/list", func(_ context.Context, _ *playedLink, params jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
			if wire.Member(params, "cursor") == nil {
				return upstream.Reply{Result: jsontext.Value(`{"prompts":[{"name":"a"},null,{"name":5},{}],"nextCursor":""}`)}, nil
			}
			return upstream.Reply{Result: jsontext.Value(`{"prompts":[{"name":"b"}]}`)}, nil
		})
		want := `{"prompts":[{"name":"docs__a"}]}`
		if modern {
			want = `{"prompts":[{"name":"docs__a"},{"name":"docs__b"}]}`
		}
		if got := r.legacy("", `{}`).ask("prompts/list", `{}`); !strings.Contains(got, want) {
			t.Errorf("modern %t: %s, want %s", modern, got, want)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	sized := func(n int) string {
		const page = `{"prompts":[{"name":"p","x":""}]}`
		return strings.Replace(page, `"x":"`, `"x":"`+strings.Repeat("y", n-len(page)), 1)
	}
	const one = `{"prompts":[{"name":"p"}]}`
	counted := func(n int) string { return strings.Replace(one, "[", "["+strings.Repeat(`{"name":"p"},`, n-1), 1) }
	for _, tc := range []struct {
		name  string
		pages int
		last  string
		want  bool
	}{
		{"pages-at-the-limit", maxListPages, one, true}, {"pages-one-past", maxListPages + 1, one, false},
		{"bytes-at-the-limit", 1, sized(maxListBytes), true}, {"bytes-one-past", 1, sized(maxListBytes + 1), false},
		{"elements-at-the-limit", 1, counted(maxListItems), true}, {"elements-one-past", 1, counted(maxListItems + 1), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, n := newFixture(t, "docs", nil), 0
			r.servers["docs"].plays("prompts/list", func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
				if n++; n == tc.pages {
					return upstream.Reply{Result: jsontext.Value(tc.last)}, nil
				}
				return upstream.Reply{Result: jsontext.Value(`{"prompts":[],"nextCursor":"x"}`)}, nil
			})
			if got := r.modern("", `{}`).ask("prompts/list", `{}`); strings.Contains(got, "docs__p") != tc.want {
				t.Errorf("the list is %.200s", got)
			}
		})
	}
}

func TestRequestsToAllServersFindTheirOwn(t *testing.T) {
	lists := func(r *fixture) {
		r.servers["a"].says("resources/list", `{"resources":[{"uri":"a:1"},{"uri":"x:both"}]}`)
		r.servers["a_"].says("resources/list", `{"resources":[{"uri":"b:1"},{"uri":"x:both"}]}`)
		r.servers["a"].says("resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"ta:{id}/x"},{"uriTemplate":"{any}"},{"uriTemplate":"tb:{id}"}]}`)
		r.servers["a_"].says("resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"tb:{id}"},{"uriTemplate":"fixed:1"}]}`)
		r.servers["a"].says("prompts/list", `{"prompts":[{"name":"p"},{"name":"_q"},{"name":"_both"}]}`)
		r.servers["a_"].says("prompts/list", `{"prompts":[{"name":"r"},{"name":"both"}]}`)
		for _, s := range r.servers {
			for _, method := range []string{"resources/read", "resources/subscribe", "prompts/get", "completion/complete"} {
				s.says(method, `{}`)
			}
		}
	}
	for _, tc := range []struct {
		name, method, params string
		server, native       string // where it goes, as what
		want                 string // in the error
	}{
		{"listed", "resources/read", `{"uri":"a:1"}`, "a", `{"uri":"a:1"}`, ""},
		{"listed-by-the-other", "resources/subscribe", `{"uri":"b:1"}`, "a_", `{"uri":"b:1"}`, ""},
		{"listed-by-both", "resources/read", `{"uri":"x:both"}`, "", "", "a, a_"},
		{"like-a-template", "resources/read", `{"uri":"ta:7/x"}`, "a", `{"uri":"ta:7/x"}`, ""},
		{"a-template-without-variables", "resources/read", `{"uri":"fixed:1"}`, "a_", `{"uri":"fixed:1"}`, ""},
		{"like-nothing", "resources/read", `{"uri":"fixed:12"}`, "", "", `"code":-32002,"message":"no server has this resource","data":{"uri":"fixed:12"}`},
		{"no-uri", "resources/read", `{}`, "", "", `-32602`},
		{"prompt", "prompts/get", `{"name":"a__p","arguments":{"x":1.0}}`, "a", `{"name":"p","arguments":{"x":1.0}}`, ""},
		{"prompt-whose-name-begins-like-a-joint", "prompts/get", `{"name":"a___q"}`, "a", `{"name":"_q"}`, ""},
		{"native-prompt", "prompts/get", `{"name":"p"}`, "", "", "-32602"},
		{"completion-of-a-prompt", "completion/complete", `{"ref":{"type":"ref/prompt","name":"a__p"},"argument":{"name":"x","value":"1.0"}}`, "a",
			`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"1.0"}}`, ""},
		{"completion-of-a-template", "completion/complete", `{"ref":{"type":"ref/resource","uri":"ta:{id}/x"}}`, "a", `{"ref":{"type":"ref/resource","uri":"ta:{id}/x"}}`, ""},
		{"completion-of-nothing", "completion/complete", `{"ref":{"type":"ref/x"}}`, "", "", "-32602"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "a a_", nil)
			lists(r)
			got := r.legacy("", `{}`).ask(tc.method, tc.params)
			for name, s := range r.servers {
				var want []string
				if name == tc.server {
					want = []string{tc.native}
				}
				if diff := cmp.Diff(want, s.received(tc.method)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if tc.server == "" && (!strings.Contains(got, `"error":`) || !strings.Contains(got, tc.want)) {
				t.Error(got)
			}
		})
	}
}

// TestProgressThatIsNotExposed: the server gets no token.
func TestProgressThatIsNotExposed(t *testing.T) {
	r := newFixture(t, "docs mail", func(o *Options) { o.Servers[0].Expose &^= ExposeProgress })
	docs := r.servers["docs"]
	docs.says("prompts/get", `{}`)
	c := r.legacy("", `{}`)
	c.ask("prompts/get", `{"name":"docs__p","_meta":{"progressToken":1,"k":1.0}}`)
	if diff := cmp.Diff([]string{`{"name":"p","_meta":{"k":1.0}}`}, docs.received("prompts/get")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
