package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// A pager is a rig with a server that asks in its results, and a client with a session that answers.
type pager struct {
	*rig
	bob     *client
	results []string // what the server answers, one after the other
	rounds  []string // what came with the repetitions, of calls and of prompts
	asks    []string // what the client was asked
	replies func(n int, m wire.Message) (result, failed string)
	gave    int
}

func newPager(t *testing.T, change func(*Options), results ...string) *pager {
	p := &pager{rig: newRig(t, "docs", change), results: results}
	p.bob = p.legacy("docs", `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`)
	next := func() jsontext.Value {
		p.gave++
		return jsontext.Value(p.results[min(p.gave, len(p.results))-1])
	}
	p.judge.decide = func(_ context.Context, a *Ask) Answer {
		p.rounds = append(p.rounds, string(a.Extra))
		return Answer{Native: true, Judged: Judged{Run: fmt.Sprint("run", p.gave+1)}, Result: next()}
	}
	p.servers["docs"].plays("prompts/get", func(_ context.Context, _ *playedLink, params jsontext.Value, _ func(wire.Message)) (upstream.Reply, error) {
		p.rounds = append(p.rounds, string(extra(clientInput{responses: wire.Member(params, "inputResponses"), state: wire.Member(params, "requestState")})))
		return upstream.Reply{Result: next()}, nil
	})
	p.replies = func(n int, m wire.Message) (string, string) { return fmt.Sprintf(`{"n":%d}`, n), "" }
	return p
}

// ask sends a request, answers what the client is asked meanwhile, and returns the answer.
func (p *pager) ask(method string) string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan string, 1)
	go func() { over <- string(p.dispatch(ctx, p.bob.request(`7`, method, `{"name":"echo"}`))) }()
	for {
		select {
		case said := <-p.bob.out:
			m, err := wire.Read([]byte(said))
			if err != nil {
				p.t.Fatal(err)
			}
			p.asks = append(p.asks, m.Method+" "+string(m.Params))
			if m.ID == nil {
				continue
			}
			result, failed := p.replies(len(p.asks), m)
			q := p.bob.request(string(m.ID), "", "")
			switch {
			case result != "":
				q.Result = jsontext.Value(result)
			case failed != "":
				q.Error = jsontext.Value(failed)
			default:
				continue
			}
			p.dispatch(context.Background(), q)
		case message := <-over:
			return message
		}
	}
}

const (
	oneForm  = `{"f":{"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/x":1},"message":"Which?","requestedSchema":{}}}}`
	inTheEnd = `{"content":[],"_meta":{"k":1}}`
)

// wants is a result that asks.
func wants(requests, state string) string {
	if state != "" {
		state = `,"requestState":"` + state + `"`
	}
	if requests != "" {
		requests = `,"inputRequests":` + requests
	}
	return `{"resultType":"input_required"` + requests + state + `}`
}

func TestServersOfTheStatelessRevisionsAskSessions(t *testing.T) {
	for _, method := range []string{byTool, byPrompt} {
		t.Run(strings.ReplaceAll(method, "/", "-"), func(t *testing.T) {
			three := `{"f":{"method":"elicitation/create","params":{"message":"a"}},"s":{"method":"sampling/createMessage","params":{"messages":[]}},"r":{"method":"roots/list"}}`
			p := newPager(t, nil, wants(three, `st\u0061te`), wants("", "later"), wants(oneForm, ""), inTheEnd)
			if got := p.ask(method); !strings.Contains(got, `"id":7,"result":`+inTheEnd) {
				t.Errorf("in the end: %s", got)
			}
			want := []string{
				`elicitation/create {"message":"a"}`, `sampling/createMessage {"messages":[]}`, `roots/list `,
				`elicitation/create {"_meta":{},"message":"Which?","requestedSchema":{}}`,
			}
			if diff := cmp.Diff(want, p.asks); diff != "" {
				t.Errorf("the client was asked (-want +got):\n%s", diff)
			}
			want = []string{
				``, `{"inputResponses":{"f":{"n":1},"s":{"n":2},"r":{"n":3}},"requestState":"st\u0061te"}`,
				`{"requestState":"later"}`, `{"inputResponses":{"f":{"n":4}}}`,
			}
			if diff := cmp.Diff(want, p.rounds); diff != "" {
				t.Errorf("the server got (-want +got):\n%s", diff)
			}
			var passed []string
			for _, w := range p.passed {
				if !strings.HasSuffix(w, byPrompt) {
					passed = append(passed, strings.Replace(w, " docs ", " ", 1))
				}
			}
			if want := 8; len(passed) != want || passed[0] != "to_client elicitation/create" || passed[7] != "to_server elicitation/create" {
				t.Errorf("what was recorded: %q", passed)
			}
			if n := p.bob.session.requests.Len(); n != 0 {
				t.Errorf("%d questions are left", n)
			}
		})
	}
}

// TestSessionsThatDoNotAnswer: the server gets no more requests, the client gets a result that says so, and receives that nobody waits.
// TestReplaceEndsRounds: a request is not repeated by a configuration that was replaced while its client answered a question.
func TestReplaceEndsRounds(t *testing.T) {
	for _, method := range []string{byTool, byPrompt} {
		t.Run(strings.ReplaceAll(method, "/", "-"), func(t *testing.T) {
			p := newPager(t, nil, wants(oneForm, ""), inTheEnd)
			p.replies = func(int, wire.Message) (string, string) {
				p.replace(p.config(nil))
				return `{"action":"accept"}`, ""
			}
			if got := p.ask(method); !strings.Contains(got, CodeInputRefused) || !strings.Contains(got, "was reloaded") || p.gave != 1 {
				t.Errorf("the server answered %d times: %s", p.gave, got)
			}
		})
	}
}

func TestSessionsThatDoNotAnswer(t *testing.T) {
	two := `{"f":{"method":"roots/list"},"s":{"method":"roots/list"}}`
	secondly := func(result, failed string) func(*pager, int) (string, string) {
		return func(_ *pager, n int) (string, string) {
			if n == 1 {
				return "", ""
			}
			return result, failed
		}
	}
	for _, tc := range []struct {
		name      string
		replies   func(p *pager, n int) (result, failed string)
		why       string
		cancelled int // questions that are taken back
	}{
		{"with-an-error", secondly("", `{"code":-1,"message":"no"}`), "answered with an error", 1},
		{"with-an-array", secondly(`[]`, ""), "answered with an error", 1},
		{"and-the-session-ends", func(p *pager, n int) (string, string) { p.bob.session.End(); return "", "" }, "ended its session", 2},
		{"and-the-gateway-stops", func(p *pager, n int) (string, string) {
			if n == 2 {
				p.table.Requests.Stop()
			}
			return "", ""
		}, "is stopping", 2},
		{"and-cancels", func(p *pager, n int) (string, string) {
			p.dispatch(context.Background(), p.bob.request("", methodCancelled, `{"requestId":7}`))
			return "", ""
		}, "did not answer", 2},
		{"and-nothing-can-be-recorded", func(p *pager, n int) (string, string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refuse = true
			return "", `{"code":-1,"message":"no"}`
		}, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPager(t, nil, wants(two, "s"), inTheEnd)
			p.replies = func(n int, m wire.Message) (string, string) { return tc.replies(p, n) }
			got := p.ask(byTool)
			if !strings.Contains(got, `"code":"input_refused"`) || !strings.Contains(got, tc.why) || !strings.Contains(got, `"run_id":"run1"`) {
				t.Error(got)
			}
			if len(p.rounds) != 1 {
				t.Errorf("the server was asked %d times", len(p.rounds))
			}
			if tc.why == "" {
				return
			}
			for _, said := range p.bob.received() {
				p.asks = append(p.asks, wire.TextMember([]byte(said), "method")+" ")
			}
			if n := strings.Count(strings.Join(p.asks, "\n"), methodCancelled); n != tc.cancelled {
				t.Errorf("%d questions were taken back: %q", n, p.asks)
			}
			if n := p.bob.session.requests.Len(); n != 0 {
				t.Errorf("%d questions are left", n)
			}
		})
	}
}

func TestAClientThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPager(t, nil, wants(oneForm, ""), inTheEnd)
		p.replies = func(int, wire.Message) (string, string) { return "", "" }
		begun := time.Now()
		if got := p.ask(byTool); !strings.Contains(got, "did not answer") || time.Since(begun) != ask.InputTimeout {
			t.Errorf("after %s: %s", time.Since(begun), got)
		}
	})
}

func TestRoundsAreBounded(t *testing.T) {
	results := make([]string, ask.MaxRounds, ask.MaxRounds+2)
	for i := range results {
		results[i] = wants("", "again")
	}
	p := newPager(t, nil, append(results, inTheEnd)...)
	if got := p.ask(byTool); !strings.Contains(got, inTheEnd) {
		t.Errorf("at the limit: %s", got)
	}
	p = newPager(t, nil, append(results, wants("", "again"), inTheEnd)...)
	if got := p.ask(byPrompt); !strings.Contains(got, `"code":"input_refused"`) || !strings.Contains(got, "again and again") {
		t.Errorf("one past: %s", got)
	}
	questions := func(n int) string {
		var b wire.Object
		for i := range n {
			b.Add(fmt.Sprint("q", i), []byte(`{"method":"roots/list"}`))
		}
		return string(b.Done())
	}
	p = newPager(t, nil, wants(questions(ask.MaxQuestions), ""), inTheEnd)
	if got := p.ask(byTool); !strings.Contains(got, inTheEnd) {
		t.Errorf("as many questions as may be: %s", got)
	}
	p = newPager(t, nil, wants(questions(ask.MaxQuestions+1), ""), inTheEnd)
	p.replies = func(int, wire.Message) (string, string) { return "", "" }
	if got := p.ask(byTool); !strings.Contains(got, "too many questions") {
		t.Errorf("one question past: %s", got)
	}
}

// TestURLsOfSessionsHaveAnID: the revisions with sessions want one.
func TestURLsOfSessionsHaveAnID(t *testing.T) {
	url := func(more string) string {
		return `{"u":{"method":"elicitation/create","params":{"message":"a","mode":"url","url":"https://x.example"` + more + `}}}`
	}
	p := newPager(t, nil, wants(url(""), ""), wants(url(`,"elicitationId":"theirs"`), ""), inTheEnd)
	if got := p.ask(byTool); !strings.Contains(got, inTheEnd) {
		t.Error(got)
	}
	id, _ := wire.Text(wire.Member([]byte(strings.TrimPrefix(p.asks[0], "elicitation/create ")), "elicitationId"))
	if len(id) < 20 || !strings.Contains(p.asks[1], `"elicitationId":"theirs"`) {
		t.Errorf("%q", p.asks)
	}
}

// TestWhereToDecideIsShownToStatelessClients: in place of the answer, and their repetition of the call is inTheEnd.
func TestWhereToDecideIsShownToStatelessClients(t *testing.T) {
	pending := jsontext.Value(`{"_meta":{"io.pgfsm/decision":{"code":"approval_required"}},"content":[]}`)
	r := newRig(t, "docs mail", func(o *Options) { o.Servers[0].Expose = DefaultExpose })
	shows := true
	r.judge.decide = func(_ context.Context, a *Ask) Answer {
		if shows && a.Elicit {
			if !a.Returns {
				t.Error("it is not known that the client comes back")
			}
			a.Show("https://decide.example/1", "A person has to decide.", "run1")
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
