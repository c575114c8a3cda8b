package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

// TestInputIsAskedOfThoseWhoCanGiveIt goes through who is asked, for what, and what is exposed.
func TestInputIsAskedOfThoseWhoCanGiveIt(t *testing.T) {
	const form = `{"a":{"method":"elicitation/create","params":{"message":"x","requestedSchema":{}}}}`
	const all = `{"sampling":{},"elicitation":{},"roots":{}}`
	asks := func(requests string) string {
		return `{"resultType":"input_required","inputRequests":` + requests + `}`
	}
	for _, tc := range []struct {
		name, can, result string
		legacy            bool
		without           Expose
		passes            bool
		why               string
	}{
		{"form", all, asks(form), false, 0, true, ""},
		{"roots", all, asks(`{"a":{"method":"roots/list"}}`), false, 0, true, ""},
		{"session", all, asks(form), true, 0, false, "which no client of revision 2025-11-25 can give"},
		{"session-requests-without-a-type", all, `{"inputRequests":` + form + `}`, true, 0, false, "which no client of revision 2025-11-25 can give"},
		{"session-not-exposed", all, asks(form), true, ExposeInputRequired, false, "input_required"},
		{"session-type-in-escapes", all, `{"result\u0054ype":"input\u005frequired"}`, true, 0, false, "which no client of revision 2025-11-25 can give"},
		{"input-not-exposed", all, asks(form), false, ExposeInputRequired, false, "input_required"},
		{"elicitation-not-exposed", all, asks(form), false, ExposeElicitation, false, "does not expose"},
		{"sampling-not-exposed", all, asks(`{"b":{"method":"roots/list"},"a":{"method":"sampling/createMessage"}}`), false, ExposeSampling, false, "does not expose"},
		{"roots-not-exposed", all, asks(`{"a":{"method":"roots/list"}}`), false, ExposeRoots, false, "does not expose"},
		{"not-declared", `{"sampling":{}}`, asks(form), false, 0, false, "does not declare elicitation"},
		{"one-of-two-not-declared", `{"elicitation":{}}`, asks(`{"r":{"method":"roots/list"},` + form[1:]), false, 0, false, "does not declare roots"},
		{"second-member", `{"elicitation":{}}`, `{"inputRequests":` + form + `,"inputRequests":{"r":{"method":"roots/list"}}}`, false, 0, false, "does not declare roots"},
		{"url-not-declared", `{"elicitation":{}}`, asks(`{"a":{"method":"elicitation/create","params":{"mode":"url"}}}`), false, 0, false, "mode url"},
		{"unknown-method", all, asks(`{"a":{"method":"tools/call"}}`), false, 0, false, "does not expose"},
		{"no-method", all, asks(`{"a":{}}`), false, 0, false, "does not expose"},
		{"unreadable", all, asks(`[1]`), false, 0, false, "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose &^= tc.without })
			r.judge.decide = func(context.Context, *ToolCall) Answer {
				return Answer{Native: true, Result: jsontext.Value(tc.result)}
			}
			r.servers["docs"].says("prompts/get", tc.result)
			c := r.modern("docs", tc.can)
			if tc.legacy {
				c = r.legacy("docs", tc.can)
			}
			called, got := c.ask("tools/call", `{"name":"echo"}`), c.ask("prompts/get", `{"name":"p"}`)
			if tc.passes {
				if !strings.Contains(called, tc.result[1:]) || !strings.Contains(got, tc.result[1:]) {
					t.Errorf("%s\n%s", called, got)
				}
				return
			}
			if !strings.Contains(called, `"isError":true`) || !strings.Contains(called, `"code":"input_refused"`) || !strings.Contains(called, tc.why) {
				t.Errorf("tools/call: %s", called)
			}
			if !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, `"data":{"code":"input_refused"}`) || !strings.Contains(got, tc.why) {
				t.Errorf("prompts/get: %s", got)
			}
		})
	}
}

func TestStateIsBoundToWhoItWasGivenTo(t *testing.T) {
	const state = `a.b\"\u00e9`
	r := newFixture(t, "docs mail", nil)
	result := `{"requestState":"` + state + `","resultType":"input_required","_meta":{"k":1}}`
	r.judge.decide = func(context.Context, *ToolCall) Answer { return Answer{Native: true, Result: jsontext.Value(result)} }
	r.servers["docs"].says("prompts/get", result)
	ann, bob := r.modern("docs", `{}`), r.modern("docs", `{}`)
	bob.from = Identity{Name: "ann", Token: "another"}
	app, agent := r.modern("docs", `{}`), r.modern("docs", `{}`)
	app.from = Identity{Name: "ann", Client: "app"}
	agent.from = Identity{Name: "ann", OnBehalfOf: "bob"}
	given := wire.Member(wire.Member([]byte(ann.ask("tools/call", `{"name":"echo"}`)), "result"), "requestState")
	if plain, err := wire.Text(given); err != nil || !strings.HasSuffix(plain, `.a.b"é`) {
		t.Fatalf("the state is %s", given)
	}
	asked := func(c *client, method, name, state string) string {
		return c.ask(method, `{"name":"`+name+`","inputResponses":{"x":[1.0]},"requestState":`+state+`}`)
	}
	tampered := strings.TrimSuffix(string(given), `"`) + `-TAMPERED"`
	for _, tc := range []struct {
		name, method, tool, state string
		c                         *client
	}{
		{"another-identity", "tools/call", "echo", string(given), bob}, {"another-client-id", "tools/call", "echo", string(given), app},
		{"on-behalf-of-another", "tools/call", "echo", string(given), agent}, {"another-tool", "tools/call", "other", string(given), ann},
		{"another-method", "prompts/get", "echo", string(given), ann}, {"tampered", "tools/call", "echo", tampered, ann},
		{"bare", "tools/call", "echo", `"` + state + `"`, ann}, {"no-seal", "tools/call", "echo", `".x"`, ann}, {"empty", "tools/call", "echo", `""`, ann},
		{"another-server", "tools/call", "echo", string(given), r.modern("mail", `{}`)},
	} {
		n := len(r.judge.asked)
		if got := asked(tc.c, tc.method, tc.tool, tc.state); !strings.Contains(got, `"code":-32602`) || len(r.judge.asked) != n {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
	asked(ann, "tools/call", "echo", string(given))
	if diff := cmp.Diff(`{"inputResponses":{"x":[1.0]},"requestState":"a.b\"é"}`, string(r.judge.last().Extra)); diff != "" {
		t.Errorf("what the server gets back (-want +got):\n%s", diff)
	}
	given = wire.Member(wire.Member([]byte(ann.ask("prompts/get", `{"name":"p"}`)), "result"), "requestState")
	asked(ann, "prompts/get", "p", string(given))
	if got := r.servers["docs"].received("prompts/get"); !strings.Contains(got[len(got)-1], `"requestState":"a.b\"é"`) {
		t.Errorf("a prompt: %q", got)
	}
	again := newFixture(t, "docs", nil)
	again.servers["docs"].says("prompts/get", `{}`)
	if got := asked(again.modern("docs", `{}`), "prompts/get", "p", string(given)); !strings.Contains(got, `"code":-32602`) {
		t.Errorf("a state of another process: %s", got)
	}
}

func TestInputNeedsToBeExposed(t *testing.T) {
	r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose &^= ExposeInputRequired })
	c := r.modern("docs", `{}`)
	for _, more := range []string{`"inputResponses":{}`, `"requestState":"x"`} {
		for _, method := range []string{"tools/call", "prompts/get", "resources/read"} {
			got := c.ask(method, `{"name":"echo","uri":"a:b",`+more+`}`)
			if method == "tools/call" {
				got = c.ask(method, `{"name":"echo",`+more+`}`)
			}
			if !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "input_required") || len(r.judge.asked)+len(r.servers["docs"].received(method)) > 0 {
				t.Errorf("%s %s: %s", method, more, got)
			}
		}
	}
}

const (
	byTool, byPrompt = "tools/call", "prompts/get"
	first1           = `{"name":"echo","arguments":{"n":1}}`
)

// asked is the state and the questions of an answer that asks.
func asked(t *testing.T, message string) (state string, requests jsontext.Value) {
	t.Helper()
	result := wire.Member([]byte(message), "result")
	if kind, _ := wire.Text(wire.Member(result, "resultType")); kind != "input_required" {
		t.Fatalf("it asks nothing: %s", message)
	}
	return string(wire.Member(result, "requestState")), wire.Member(result, "inputRequests")
}

// again repeats a request with answers.
func (c *client) again(method, state, responses string) string {
	c.t.Helper()
	return c.ask(method, `{"name":"echo","arguments":{"n":1},"_meta":`+c.meta("")+`,"requestState":`+state+`,"inputResponses":`+responses+`}`)
}

// TestWhereToDecideIsShownToStatelessClients: in place of the answer, and their repetition of the call is inTheEnd.
func TestWhereToDecideIsShownToStatelessClients(t *testing.T) {
	pending := jsontext.Value(`{"_meta":{"io.pgfsm/decision":{"code":"approval_required"}},"content":[]}`)
	r := newFixture(t, "docs mail", func(o *Options) { o.Servers[0].Expose = DefaultExpose })
	shows := true
	r.judge.decide = func(_ context.Context, a *ToolCall) Answer {
		if shows && a.Elicit {
			if !a.Repeat {
				t.Error("it is not known that the client comes back")
			}
			a.ShowURL("https://decide.example/1", "A person has to decide.", "run1")
		}
		return Answer{Result: pending}
	}
	ann := r.modern("docs", `{"elicitation":{"url":{}}}`)
	state, requests := asked(t, ann.ask(byTool, first1))
	want := `{"decide":{"method":"elicitation/create","params":{"mode":"url","message":"A person has to decide.","url":"https://decide.example/1"}}}`
	if diff := cmp.Diff(want, string(requests)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	bob := r.modern("docs", ann.can)
	bob.from = Identity{Name: "bob"}
	shows = false
	for name, ask := range map[string]func() string{ // in any order: each is looked at
		"another-identity": func() string { return bob.again(byTool, state, `{"decide":{}}`) },
		"another-tool":     func() string { return ann.ask(byTool, `{"name":"other","requestState":`+state+`}`) },
		"another-server":   func() string { return r.modern("mail", ann.can).again(byTool, state, `{}`) },
		"another-run":      func() string { return ann.again(byTool, `"held.run2"`, `{}`) },
	} {
		if got := ask(); !strings.Contains(got, `"approval_required"`) || r.judge.last().Extra != nil {
			t.Errorf("%s: %s, and the machine was told %s: it is a call of its own, without input", name, got, r.judge.last().Extra)
		}
	}
	if got := ann.again(byPrompt, state, `{}`); !strings.Contains(got, `"code":-326`) {
		t.Errorf("another method: %s", got)
	}
	if got := ann.again(byTool, state, `{"decide":{"action":"accept"}}`); !strings.Contains(got, `"approval_required"`) {
		t.Error(got)
	}
	if a := r.judge.last(); a.Extra != nil || string(a.Arguments) != `{"n":1}` {
		t.Errorf("the machine was told %s, %s", a.Extra, a.Arguments)
	}
	shows = true
	if got := r.modern("docs", `{"elicitation":{}}`).ask(byTool, first1); !strings.Contains(got, `"approval_required"`) {
		t.Errorf("a client without URLs: %s", got)
	}
}
