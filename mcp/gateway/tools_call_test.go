package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

func TestToolsAreListedByteForByte(t *testing.T) {
	tool := `{ "name" : "ec\/ho", "inputSchema":{"type":"object","x":` + odd + `},"_meta":{"io.modelcontextprotocol/x":1}}`
	r := newFixture(t, "docs", nil)
	r.servers["docs"].tools = []string{tool, `{"name":"hidden"}`, `{"name":"z"}`, `{"name":"a"}`}
	r.judge.hidden = []string{"hidden"}
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":7,"result":{"tools":[`+tool+`,{"name":"z"},{"name":"a"}]}}`, r.legacy("docs", `{}`).ask("tools/list", `{}`)); diff != "" {
		t.Errorf("one server (-want +got):\n%s", diff)
	}
	joined := strings.Replace(tool, `"ec\/ho"`, `"docs__ec/ho"`, 1)
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":7,"result":{"tools":[`+joined+`,{"name":"docs__z"},{"name":"docs__a"}]}}`, r.legacy("", `{}`).ask("tools/list", `{}`)); diff != "" {
		t.Errorf("all servers (-want +got):\n%s", diff)
	}
	got := r.modern("docs", `{}`).ask("tools/list", `{"cursor":null}`)
	if !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"cacheScope":"private"`) || !strings.Contains(got, `"ttlMs":`) || strings.Contains(got, "nextCursor") {
		t.Error(got)
	}
	for _, at := range []string{"docs", ""} {
		if got := r.modern(at, `{}`).ask("tools/list", `{"cursor":"x"}`); !strings.Contains(got, `"code":-32602`) {
			t.Error(got)
		}
	}
}

// TestToolsOfGroups: each request gets the tools of its own groups, also in one session.
func TestToolsOfGroups(t *testing.T) {
	r := newFixture(t, "docs mail", nil)
	for name, s := range r.servers {
		s.tools = []string{`{"name":"` + name + `_all"}`, `{"name":"` + name + `_oncall"}`}
	}
	r.judge.groups = map[string]string{"docs_oncall": "oncall", "mail_oncall": "oncall"}
	in := func(groups ...string) *policy.Identity { return &policy.Identity{Groups: &groups} }
	for _, c := range []*client{r.legacy("docs", `{}`), r.modern("docs", `{}`), r.legacy("", `{}`), r.modern("", `{}`)} {
		for _, step := range []struct {
			name     string
			identity *policy.Identity
			listed   bool
		}{
			{"no-provider", nil, false}, {"in-the-group", in("dev", "oncall"), true}, {"not-any-more", in("dev"), false},
			{"unknown-groups", &policy.Identity{}, false}, {"again", in("oncall"), true},
		} {
			c.identity = step.identity
			got := c.ask("tools/list", `{}`)
			if !strings.Contains(got, "docs_all") || strings.Contains(got, "_oncall") != step.listed {
				t.Errorf("%s at %q: %s", step.name, c.at, got)
			}
			c.ask("tools/call", `{"name":"`+strings.TrimPrefix("docs__docs_all", c.at+"__")+`"}`)
			if last := r.judge.last(); last.Identity != step.identity || last.Tool != "docs_all" {
				t.Errorf("%s at %q: a call of %+v", step.name, c.at, last.Identity)
			}
		}
	}
}

// TestAServerThatIsLeftOutIsLoggedOnce shows that the log names a server whose list fails, and why, until the list works again.
func TestAServerThatIsLeftOutIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	r := newFixture(t, "docs dead", func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.servers["dead"].down = true
	slow := &upstream.LinkError{Code: upstream.CodeTimeout, Reason: "it did not answer tools/list within connect_timeout (10s)"}
	for _, failed := range []error{slow, slow, nil, slow} {
		r.servers["docs"].unlisted = failed
		for _, c := range []*client{r.modern("", `{}`), r.legacy("", `{}`)} {
			c.ask("tools/list", `{}`)
		}
	}
	left, down := strings.Count(log.String(), "a server's tools were left out\" server=docs"), strings.Count(log.String(), "a server cannot be reached\" server=dead")
	if left != 2 || down != 1 || strings.Count(log.String(), "\n") != 3 || !strings.Contains(log.String(), "connect_timeout (10s)") {
		t.Errorf("docs was left out in %d lines, and dead was down in %d, want 2, 1 and no others:\n%s", left, down, log.String())
	}
}

// clashing servers: a tool of one may read as a tool of the other.
func clashing(t *testing.T, log *bytes.Buffer) *fixture {
	r := newFixture(t, "b a a_ dead", func(o *Options) {
		if log != nil {
			o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	})
	r.servers["dead"].down = true
	r.servers["b"].tools = []string{`{"name":"x__y"}`, `{"name":"n"}`}
	r.servers["a"].tools = []string{`{"name":"_both"}`, `{"name":"_mine"}`, `{"name":"n"}`, `{"name":"` + strings.Repeat("l", policy.MaxJoinedName-len("a__")) + `"}`, `{"name":"` + strings.Repeat("m", policy.MaxJoinedName-len("a__")+1) + `"}`}
	r.servers["a_"].tools = []string{`{"name":"both"}`, `{"name":"theirs"}`, `{"name":"hidden"}`}
	r.judge.hidden = []string{"hidden"}
	return r
}

func TestNamesOfAllServers(t *testing.T) {
	var log bytes.Buffer
	r := clashing(t, &log)
	got := r.legacy("", `{}`).ask("tools/list", `{}`)
	want := `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"b__x__y"},{"name":"b__n"},{"name":"a___both"},{"name":"a___mine"},{"name":"a__n"},{"name":"a__` +
		strings.Repeat("l", policy.MaxJoinedName-len("a__")) + `"}]}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []string{"a server cannot be reached", "its name there is too long", "its name there is that of another server's tool"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	for _, tc := range []struct {
		name, tool, server, native string
	}{
		{"plain", "b__n", "b", "n"}, {"joint-in-the-name", "b__x__y", "b", "x__y"}, {"first-joint-counts", "a___mine", "a", "_mine"},
		{"never-a-later-joint", "a___theirs", "a", "_theirs"},
		{"longest", "a__" + strings.Repeat("l", policy.MaxJoinedName-len("a__")), "a", strings.Repeat("l", policy.MaxJoinedName-len("a__"))},
		{"too-long", "a__" + strings.Repeat("m", policy.MaxJoinedName-len("a__")+1), "", ""},
		{"of-a-server-that-is-down", "dead__x", "dead", "x"},
		{"no-such-tool", "b__nothing", "b", "nothing"}, {"no-such-server", "c__n", "", ""},
		{"native", "n", "", ""}, {"no-tool", "b__", "", ""}, {"no-server", "__n", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := clashing(t, nil)
			got := r.legacy("", `{}`).ask("tools/call", `{"name":"`+tc.tool+`"}`)
			if tc.server == "" {
				if len(r.judge.asked) > 0 || !strings.Contains(got, `"code":-32602`) {
					t.Errorf("%v %s", r.judge.asked, got)
				}
				return
			}
			if len(r.judge.asked) != 1 || r.judge.last().Server != tc.server || r.judge.last().Tool != tc.native {
				t.Errorf("%+v %s", r.judge.asked, got)
			}
		})
	}
}

func TestCallsAreTakenApart(t *testing.T) {
	for _, tc := range []struct {
		name, params          string
		refused               string // in the answer, if it is refused
		tool, arguments, meta string
	}{
		{"all", `{"name":"e\u0063ho","arguments":{"a":1.0,"b":1e400},"_meta":{"k":[1.0],"io.modelcontextprotocol/clientInfo":{},"progressToken":12345678901234567890}}`, "",
			"echo", `{"a":1.0,"b":1e400}`, `{"progressToken":12345678901234567890}`},
		{"least", `{"name":"echo"}`, "", "echo", `{}`, ""},
		{"unknown-goes-to-the-machine", `{"name":"nothing","arguments":{}}`, "", "nothing", `{}`, ""},
		{"nulls-say-nothing", `{"name":"echo","task":null,"requestState":null,"inputResponses":null}`, "", "echo", `{}`, ""},
		{"token-that-is-none", `{"name":"echo","_meta":{"progressToken":{}}}`, "", "echo", `{}`, ""},
		{"arguments-are-null", `{"name":"echo","arguments":null}`, "", "echo", `{}`, ""},
		{"task-of-an-older-revision", `{"name":"echo","task":{"ttl":1}}`, "", "echo", `{}`, ""},
		{"no-name", `{"arguments":{}}`, `\"name\" is missing`, "", "", ""},
		{"empty-name", `{"name":""}`, `\"name\"`, "", "", ""},
		{"name-is-a-number", `{"name":1}`, `\"name\"`, "", "", ""},
		{"arguments-are-a-list", `{"name":"echo","arguments":[]}`, `\"arguments\"`, "", "", ""},
		{"meta-is-a-list", `{"name":"echo","_meta":[]}`, `\"_meta\"`, "", "", ""},
		{"unknown-member", `{"name":"echo","priority":1}`, `\"priority\"`, "", "", ""},
		{"input-of-a-client-with-a-session", `{"name":"echo","inputResponses":{}}`, `2025-11-25`, "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			got := r.legacy("docs", `{}`).ask("tools/call", tc.params)
			if tc.refused != "" {
				if len(r.judge.asked) > 0 || !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, tc.refused) {
					t.Errorf("%d calls were judged, and the answer is %s, want none and %s", len(r.judge.asked), got, tc.refused)
				}
				return
			}
			a := r.judge.last()
			want := []string{"ann", "docs", tc.tool, tc.arguments, tc.meta, ""}
			if diff := cmp.Diff(want, []string{a.From.Name, a.Server, a.Tool, string(a.Arguments), string(a.Meta), string(a.Extra)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatTheMachineIsToldOfTheClient(t *testing.T) {
	const tasks, url = `"extensions":{"io.modelcontextprotocol/tasks":{}}`, `"elicitation":{"url":{}}`
	for _, tc := range []struct {
		name, can            string
		modern               bool
		change               func(*Options)
		tasks, elicit, token bool
	}{
		{"session-with-all", `{` + tasks + `,` + url + `}`, false, nil, true, true, true},
		{"stateless-with-all", `{` + tasks + `,` + url + `}`, true, nil, true, true, true},
		{"nothing", `{}`, false, nil, false, false, true},
		{"form-only", `{"elicitation":{}}`, false, nil, false, false, true},
		{"no-tasks-here", `{` + tasks + `}`, true, func(o *Options) { o.Tasks = false }, false, false, true},
		{"no-progress-here", `{}`, true, func(o *Options) { o.Servers[0].Expose &^= ExposeProgress }, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", tc.change)
			c := r.modern("docs", tc.can)
			if !tc.modern {
				c = r.legacy("docs", tc.can)
			}
			c.ask("tools/call", `{"name":"echo","_meta":`+c.meta(`,"progressToken":"t"`)+`}`)
			a := r.judge.last()
			got := []bool{a.Tasks, a.Elicit, a.token != nil, a.Meta != nil}
			if want := []bool{tc.tasks, tc.elicit, tc.token, tc.token}; !slices.Equal(got, want) {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestAnswersOfTheMachine(t *testing.T) {
	const self = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"pgfsm","version":"1"}}`
	for _, tc := range []struct {
		name           string
		answer         Answer
		legacy, modern string
	}{
		{"native", Answer{Native: true, Result: jsontext.Value(odd)}, `"result":` + odd + `}`, `"result":{"resultType":"complete",` + self + `,` + odd[1:] + `}`},
		{"ours", Answer{Result: jsontext.Value(`{"isError":true}`)}, `"result":{"isError":true}}`, `"result":{"resultType":"complete",` + self + `,"isError":true}}`},
		{"a-task", Answer{Result: jsontext.Value(`{"resultType":"task","taskId":"t"}`)}, `"result":{"resultType":"task","taskId":"t"}}`,
			`"result":{` + self + `,"resultType":"task","taskId":"t"}}`},
		{"error", Answer{Error: jsontext.Value(`{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}`)},
			`"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}}`, `"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}}`},
		{"nothing", Answer{}, `"error":{"code":-32603,"message":"there is no answer"}}`, `"error":{"code":-32603,"message":"there is no answer"}}`},
		{"native-null", Answer{Native: true, Result: jsontext.Value(`null`)}, `"error":{"code":-32603,"message":"server docs: its result is not a JSON object"}}`,
			`"error":{"code":-32603,"message":"server docs: its result is not a JSON object"}}`},
		{"native-task-that-nobody-asked-for", Answer{Native: true, Result: jsontext.Value(`{"resultType":"task","taskId":"t"}`), Judged: Judged{Run: "r1"}},
			`"result":` + refusedKind + `}`, `"result":{"resultType":"complete",` + strings.TrimSuffix(self, "}") + `,` + strings.TrimPrefix(refusedKind, `{"_meta":{`) + `}`},
		{"native-complete-and-a-task", Answer{Native: true, Result: jsontext.Value(`{"resultType":"complete","resultType":"t\u0061sk"}`), Judged: Judged{Run: "r1"}},
			`"result":` + refusedKind + `}`, `"result":{"resultType":"complete",` + strings.TrimSuffix(self, "}") + `,` + strings.TrimPrefix(refusedKind, `{"_meta":{`) + `}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			r.judge.decide = func(context.Context, *ToolCall) Answer { return tc.answer }
			want := []string{`{"jsonrpc":"2.0","id":7,` + tc.legacy, `{"jsonrpc":"2.0","id":7,` + tc.modern}
			got := []string{r.legacy("docs", `{}`).ask("tools/call", `{"name":"echo"}`), r.modern("docs", `{}`).ask("tools/call", `{"name":"echo"}`)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// refusedKind is what a client is told of a result that it does not get.
const refusedKind = `{"_meta":{"io.pgfsm/decision":` + refusedAbout + `},"content":[{"text":"The call was made; the result is withheld. ` + refusedWhy +
	`\n{\"code\":\"result_refused\",\"effect\":\"done\",\"policy\":\"\",\"reason\":\"` + refusedWhy + `\",\"retry\":\"no\",\"run_id\":\"r1\"}",` +
	`"type":"text"}],"isError":true}`

const (
	refusedWhy   = "server docs: it answered with a kind of result that nobody asked for"
	refusedAbout = `{"code":"result_refused","effect":"done","policy":"","reason":"` + refusedWhy + `","retry":"no","run_id":"r1"}`
)

func TestDuringACall(t *testing.T) {
	r := newFixture(t, "docs", nil)
	r.judge.decide = func(ctx context.Context, a *ToolCall) Answer {
		if _, err := a.Connect(ctx); err != nil {
			t.Error(err)
		}
		a.SendProgress(0.5, 0, "a\"b")
		a.SendProgress(2, 3, "")
		a.OnMessage(ctx, wire.Message{Method: "notifications/progress", Params: jsontext.Value(`{"progressToken":"t\u0031","progress":1.0,"_meta":{"io.modelcontextprotocol/x":1}}`)})
		a.OnMessage(ctx, wire.Message{Method: "notifications/unknown"})
		a.ShowURL("https://x/y", "look", "id1")
		return Answer{Result: jsontext.Value(`{}`)}
	}
	c := r.legacy("docs", `{"elicitation":{"url":{}}}`)
	c.ask("tools/call", `{"name":"echo","_meta":{"progressToken":"t\u0031"}}`)
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\u0031","progress":0.5,"message":"a\"b"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\u0031","progress":2,"total":3}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\u0031","progress":1.0,"_meta":{}}}`,
		`{"jsonrpc":"2.0","id":"pgfsm-1","method":"elicitation/create","params":{"mode":"url","message":"look","url":"https://x/y","elicitationId":"id1"}}`,
	}
	if diff := cmp.Diff(want, c.received()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	q := c.request(`"pgfsm-1"`, "", "")
	q.Result = jsontext.Value(`{"action":"accept"}`)
	r.dispatch(context.Background(), q)
	if n := len(c.session.questions.byID); n != 0 {
		t.Errorf("%d requests wait", n)
	}
}

func TestTasks(t *testing.T) {
	const can = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	r := newFixture(t, "docs", nil)
	r.judge.tasks["ann/t1"] = jsontext.Value(`{"taskId":"t1","status":"working"}`)
	ann, bob := r.modern("docs", can), r.modern("", can)
	bob.from = Identity{Name: "bob"}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := r.modern("docs", `{}`).ask(method, `{"taskId":"t1"}`); !strings.Contains(got, `"code":-32021,`) ||
			!strings.Contains(got, `"data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
			t.Errorf("%s of a client that does not declare it: %s", method, got)
		}
		for _, params := range []string{`{}`, `{"taskId":1}`, `{"taskId":""}`, `{"taskId":"t2"}`} {
			if got := ann.ask(method, params); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("%s %s: %s", method, params, got)
			}
		}
		if got := bob.ask(method, `{"taskId":"t1"}`); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s of another's task: %s", method, got)
		}
		got := ann.ask(method, `{"taskId":"t1"}`)
		if !strings.Contains(got, `"resultType":"complete"`) || strings.Contains(got, `"status":"working"`) != (method == "tasks/get") {
			t.Errorf("%s: %s", method, got)
		}
	}
}

func TestTasksCanBeOff(t *testing.T) {
	r := newFixture(t, "docs", func(o *Options) { o.Tasks = false })
	r.judge.tasks["ann/t1"] = jsontext.Value(`{}`)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := r.modern("docs", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`).ask(method, `{"taskId":"t1"}`); !strings.Contains(got, `"code":-32601`) {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// TestCallsWithTooManyValues: such a call reaches the gates, which refuse it. Other such requests are refused before.
func TestCallsWithTooManyValues(t *testing.T) {
	many := `[0` + strings.Repeat(",0", wire.MaxValues) + `]`
	for _, tc := range []struct {
		name, method, params, fails string
		judged                      int
	}{
		{"arguments", "tools/call", `{"name":"echo","arguments":{"a":` + many + `}}`, "", 1},
		{"meta", "tools/call", `{"name":"echo","_meta":{"a":` + many + `}}`, "-32600", 0},
		{"name-twice", "tools/call", `{"name":"other","name":"echo","arguments":{"a":` + many + `}}`, "-32602", 0},
		{"arguments-twice", "tools/call", `{"name":"echo","arguments":{},"arguments":{"a":` + many + `}}`, "-32602", 0},
		{"another-method", "ping", `{"a":` + many + `}`, "-32600", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			r.servers["docs"].tools = []string{headed(`{}`)}
			m, err := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + tc.method + `","params":` + tc.params + `}`))
			if err != nil || !m.Large {
				t.Fatalf("Read() = large %t, %v", m.Large, err)
			}
			q := r.legacy("docs", `{}`).request("1", tc.method, tc.params)
			q.Message = m
			got := r.dispatch(t.Context(), q)
			if code := string(wire.Member(wire.Member(got, "error"), "code")); code != tc.fails || len(r.judge.asked) != tc.judged {
				t.Errorf("%s; %d calls were judged", got, len(r.judge.asked))
			}
		})
	}
}
