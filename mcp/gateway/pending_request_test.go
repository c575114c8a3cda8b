package gateway

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

const (
	askForm  = `{"_meta":{"progressToken":3,"k":1},"message":"Which?","requestedSchema":{"type":"object","properties":{}}}`
	askedFor = `{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}`
)

// elicits is a server's question.
func elicits(id string) wire.Message {
	return wire.Message{ID: jsontext.Value(id), Method: "elicitation/create", Params: jsontext.Value(askForm)}
}

// An asker is a rig with a server that asks in the middle of a call, and goes on once it is told.
type asker struct {
	*rig
	docs *played
	ann  *client
	goOn chan string // the server does not need to be told any more

	mu    sync.Mutex
	last  int
	waits map[string]chan string
}

// newAsker has the server ask question after question, each once the one before was answered, also of prompts.
func newAsker(t *testing.T, questions int, change func(*Options)) *asker {
	r := newRig(t, "docs", change)
	a := &asker{rig: r, docs: r.servers["docs"], ann: r.modern("docs", `{"elicitation":{},"sampling":{},"roots":{}}`),
		goOn: make(chan string), last: 9, waits: make(map[string]chan string)}
	a.docs.told = a.told
	r.judge.decide = func(ctx context.Context, call *Ask) Answer {
		if _, err := call.Link(ctx); err != nil {
			return Answer{Error: invalid(wire.InternalError, err.Error())}
		}
		return Answer{Native: true, Judged: Judged{Run: "run"}, Result: a.turn(ctx, questions, call.Relay)}
	}
	a.docs.plays("prompts/get", func(ctx context.Context, _ *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		return upstream.Reply{Result: a.turn(ctx, questions, on)}, nil
	})
	return a
}

// told is the answer to a question of the server.
func (a *asker) told(id, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits[id] == nil {
		a.waits[id] = make(chan string, 4)
	}
	a.waits[id] <- message
}

// next is an id for a question, and where its answer comes.
func (a *asker) next() (id string, answer chan string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	id = fmt.Sprint(a.last)
	a.waits[id] = make(chan string, 4)
	return id, a.waits[id]
}

// turn asks, and is what the server answers in the end.
func (a *asker) turn(ctx context.Context, questions int, on func(wire.Message)) jsontext.Value {
	var told []string
	for range questions {
		id, answer := a.next()
		on(elicits(id))
		select {
		case said := <-answer:
			told = append(told, said)
		case said := <-a.goOn:
			told = append(told, said)
		case <-ctx.Done():
			return jsontext.Value(`{"content":[],"cancelled":true}`)
		}
	}
	return jsontext.Value(`{"content":[],"told":` + string(wire.Quote(strings.Join(told, ";"))) + `}`)
}

// asked is the state and the questions of an answer that asks.
func asked(t *testing.T, message string) (state string, requests jsontext.Value) {
	t.Helper()
	result := wire.Member([]byte(message), "result")
	if kind, _ := wire.Text(wire.Member(result, "resultType")); kind != "input_required" {
		t.Fatalf("it asks nothing: %s", message)
	}
	return string(wire.Member(result, "requestState")), wire.Member(result, "inputRequests")
}

const byTool, byPrompt = "tools/call", "prompts/get"

// again repeats a request with answers.
func (c *client) again(method, state, responses string) string {
	c.t.Helper()
	return c.ask(method, `{"name":"echo","arguments":{"n":1},"_meta":`+c.meta("")+`,"requestState":`+state+`,"inputResponses":`+responses+`}`)
}

const first1 = `{"name":"echo","arguments":{"n":1}}`

func TestServersWithSessionsAskStatelessClients(t *testing.T) {
	for _, method := range []string{byTool, byPrompt} {
		t.Run(strings.ReplaceAll(method, "/", "-"), func(t *testing.T) {
			a := newAsker(t, 2, nil)
			state, requests := asked(t, a.ann.ask(method, first1))
			if diff := cmp.Diff(`{"q1":{"method":"elicitation/create","params":{"_meta":{"k":1},`+askedFor[1:]+`}}`, string(requests)); diff != "" {
				t.Errorf("the question (-want +got):\n%s", diff)
			}
			state, requests = asked(t, a.ann.again(method, state, `{"q1":{"_meta":{"io.modelcontextprotocol/x":1},"action":"accept"},"other":{}}`))
			if got := string(requests); !strings.HasPrefix(got, `{"q2":`) {
				t.Errorf("the second question: %s", got)
			}
			got := a.ann.again(method, state, `{"q2":{"action":"decline"}}`)
			if !strings.Contains(got, `"id":7`) || !strings.Contains(got, `10 result {\"_meta\":{},\"action\":\"accept\"};11 result {\"action\":\"decline\"}`) {
				t.Errorf("in the end: %s", got)
			}
			if n := len(a.judge.asked) + len(a.docs.received(byPrompt)); n != 1 {
				t.Errorf("it was made %d times", n)
			}
			passed := strings.Join(a.passed, ", ")
			if want := "to_client docs elicitation/create, to_server docs elicitation/create, to_client docs elicitation/create, to_server docs elicitation/create"; !strings.HasSuffix(passed, want) {
				t.Errorf("what was recorded: %s", passed)
			}
			if got := a.ann.again(method, state, `{"q2":{"action":"accept"}}`); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("after the end: %s", got)
			}
			if n := len(a.asks.All()); n != 0 {
				t.Errorf("%d are left", n)
			}
		})
	}
}

func TestPendingRequestsBelongToWhoseTheyAre(t *testing.T) {
	a := newAsker(t, 1, nil)
	state, _ := asked(t, a.ann.ask(byTool, first1))
	bob := a.modern("docs", a.ann.can)
	bob.from = Identity{Name: "ann", Token: "another"}
	tampered := strings.TrimSuffix(state, `"`) + `x"`
	const yes = `{"q1":{"action":"accept"}}`
	for _, tc := range []struct {
		name, method, params string
		c                    *client
	}{
		{"another-identity", byTool, first1, bob},
		{"another-tool", byTool, `{"name":"other","arguments":{"n":1}}`, a.ann},
		{"other-arguments", byTool, `{"name":"echo","arguments":{"n":2}}`, a.ann},
		{"no-arguments", byTool, `{"name":"echo"}`, a.ann},
		{"another-method", byPrompt, first1, a.ann},
		{"an-answer-that-is-no-object", byTool, first1, a.ann},
		{"tampered", byTool, first1, a.ann},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with, answers := state, yes
			switch tc.name {
			case "tampered":
				with = tampered
			case "an-answer-that-is-no-object":
				answers = `{"q1":"accept"}`
			}
			params := strings.TrimSuffix(tc.params, "}") + `,"requestState":` + with + `,"inputResponses":` + answers + `}`
			if got := tc.c.ask(tc.method, params); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("it was answered: %s", got)
			}
		})
	}
	if n := len(a.judge.asked); n != 1 {
		t.Errorf("%d calls", n)
	}
	if got := a.ann.again(byTool, state, yes); !strings.Contains(got, `10 result {\"action\":\"accept\"}`) {
		t.Errorf("its own client: %s", got)
	}
}

// TestSpellingsOfTheSameParams: clients write what they repeat anew.
func TestSpellingsOfTheSameParams(t *testing.T) {
	a := newAsker(t, 1, nil)
	state, _ := asked(t, a.ann.ask(byTool, `{"name":"echo","arguments":{"a":1,"b":"\u0078"}}`))
	got := a.ann.ask(byTool, `{"arguments":{ "b":"x","a":1},"inputResponses":{"q1":{}},"name":"echo","requestState":`+state+`}`)
	if !strings.Contains(got, `10 result {}`) {
		t.Error(got)
	}
}

func TestOneRequestWaitsForAPendingRequest(t *testing.T) {
	a := newAsker(t, 0, nil)
	goOn := make(chan struct{})
	a.judge.decide = func(ctx context.Context, call *Ask) Answer {
		_, _ = call.Link(ctx)
		id, answer := a.next()
		call.Relay(elicits(id))
		<-answer
		<-goOn
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
	state, _ := asked(t, a.ann.ask(byTool, first1))
	over := make(chan string, 1)
	go func() { over <- a.ann.again(byTool, state, `{"q1":{}}`) }()
	for a.onlyPending().Unattended() { // until the first of them waits
		runtime.Gosched()
	}
	if got := a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, `"code":-32600`) {
		t.Errorf("the second: %s", got)
	}
	close(goOn)
	if got := within(t, "the answer", over); !strings.Contains(got, `"content":[]`) {
		t.Error(got)
	}
}

// onlyPending is the one pending request.
func (r *rig) onlyPending() *ask.Pending { return r.asks.All()[0] }

func TestClientsThatGoWhileTheirPendingRequestIsUnderWay(t *testing.T) {
	for _, tc := range []struct {
		name    string
		without Expose
		want    string
	}{{"told", 0, `"cancelled":true`}, {"cancellation-not-exposed", ExposeCancellation, `11 result {}`}} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAsker(t, 2, func(o *Options) { o.Servers[0].Expose &^= tc.without })
			second := make(chan struct{})
			inner := a.judge.decide
			a.judge.decide = func(ctx context.Context, call *Ask) Answer {
				relay, n := call.Relay, 0
				call.Relay = func(m wire.Message) {
					if n++; n == 2 { // it is not asked: the client is gone
						close(second)
						if tc.without != 0 {
							a.told("11", "11 result {}")
						}
						return
					}
					relay(m)
				}
				return inner(ctx, call)
			}
			state, _ := asked(t, a.ann.ask(byTool, first1))
			ctx, cancel := context.WithCancel(t.Context())
			params, _ := wire.Set([]byte(first1[:len(first1)-1]+`,"requestState":`+state+`,"inputResponses":{"q1":{}}}`), "_meta", []byte(a.ann.meta("")))
			over := make(chan string, 1)
			go func() { over <- string(a.dispatch(ctx, a.ann.request(`8`, byTool, string(params)))) }()
			within(t, "the second question", second)
			cancel()
			if got := within(t, "the end", over); !strings.Contains(got, tc.want) {
				t.Error(got)
			}
		})
	}
}

func TestPendingRequestsThatNobodyComesBackFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 1, nil)
		state, _ := asked(t, a.ann.ask(byTool, first1))
		a.goOn <- "by itself"
		synctest.Wait()
		time.Sleep(ask.KeepAnswer - time.Second)
		late, _ := asked(t, a.ann.ask(byTool, first1))
		if n := len(a.asks.All()); n != 2 {
			t.Errorf("%d pending requests", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := a.ann.again(byTool, state, `{}`); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("it was kept: %s", got)
		}
		a.goOn <- "by itself"
		synctest.Wait()
		time.Sleep(ask.KeepAnswer - time.Second)
		if got := a.ann.again(byTool, late, `{}`); !strings.Contains(got, "by itself") {
			t.Errorf("it was not kept: %s", got)
		}
		if n := len(a.asks.All()); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

func TestPendingRequestsAreBounded(t *testing.T) {
	t.Run("questions", func(t *testing.T) {
		a := newAsker(t, 0, nil)
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			var answer chan string
			for i := range ask.MaxQuestions + 1 {
				var id string
				id, answer = a.next()
				call.Relay(elicits(id))
				if i == ask.MaxQuestions-1 && len(answer) > 0 {
					t.Error("the last that may be asked was refused")
				}
			}
			return Answer{Native: true, Result: jsontext.Value(`{"told":` + string(wire.Quote(<-answer)) + `}`)}
		}
		got := a.ann.ask(byTool, first1)
		for strings.Contains(got, "input_required") { // it may have been quicker than the server
			state, _ := asked(t, got)
			got = a.ann.again(byTool, state, `{}`)
		}
		if !strings.Contains(got, `73 error {\"code\":-32603`) && !strings.Contains(got, `74 error {\"code\":-32603`) {
			t.Errorf("one past the limit: %s", got)
		}
	})
	t.Run("large-requests", func(t *testing.T) {
		a := newAsker(t, 1, func(o *Options) { o.Limits.BodiesBytes = 4 * session.Small })
		large := `{"name":"echo","arguments":{"n":"` + strings.Repeat("x", session.Small) + `"}}`
		state, _ := asked(t, a.ann.ask(byTool, large))
		if got := a.ann.ask(byTool, large); !strings.Contains(got, ` error {\"code\":-32603`) {
			t.Errorf("without room: %s", got)
		}
		back := strings.TrimSuffix(large, "}") + `,"requestState":` + state + `,"inputResponses":{"q1":{}}}`
		if got := a.ann.ask(byTool, back); !strings.Contains(got, "10 result") || a.table.Bodies.Taken() != 0 {
			t.Errorf("%d bytes are taken: %s", a.table.Bodies.Taken(), got)
		}
	})
}

func TestQuestionsThatAreNotPassedOn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		can    string
		change func(*Options)
		begin  func(*asker)
		want   string
	}{
		{"not-declared", `{"roots":{}}`, nil, nil, `-32601`},
		{"not-exposed", `{"elicitation":{},"roots":{}}`, func(o *Options) { o.Servers[0].Expose &^= ExposeElicitation }, nil, `-32601`},
		{"not-recorded", `{"elicitation":{}}`, nil, func(a *asker) { a.refuse = true }, `-32603,\"message\":\"it could not be recorded`},
		{"while-the-gateway-stops", `{"elicitation":{}}`, nil, func(a *asker) { a.table.Requests.Stop() }, `-32603,\"message\":\"the client cannot come back`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAsker(t, 1, tc.change)
			a.ann.can = tc.can
			if tc.begin != nil {
				tc.begin(a)
			}
			if got := a.ann.ask(byTool, first1); !strings.Contains(got, `10 error {\"code\":`+tc.want) {
				t.Error(got)
			}
		})
	}
	t.Run("answer-not-recorded", func(t *testing.T) {
		a := newAsker(t, 1, nil)
		state, _ := asked(t, a.ann.ask(byTool, first1))
		a.refuse = true
		if got := a.ann.again(byTool, state, `{"q1":{"secret":1}}`); !strings.Contains(got, `10 error {`) || strings.Contains(got, "secret") {
			t.Error(got)
		}
	})
}

// TestNobodyIsAskedAfterTheEnd: what the server still wants to know when it has answered, and what the gateway has under way when it stops.
func TestNobodyIsAskedAfterTheEnd(t *testing.T) {
	a := newAsker(t, 0, nil)
	a.docs.plays(byPrompt, func(_ context.Context, _ *playedLink, _ jsontext.Value, on func(wire.Message)) (upstream.Reply, error) {
		on(elicits(`5`))
		a.docs.told = nil
		return upstream.Reply{Result: jsontext.Value(`{"messages":[]}`)}, nil
	})
	answer := a.ann.ask(byPrompt, first1)
	for strings.Contains(answer, "input_required") { // it may have been quicker
		state, _ := asked(t, answer)
		answer = a.ann.again(byPrompt, state, `{}`)
	}
	if !strings.Contains(answer, `"messages":[]`) {
		t.Error(answer)
	}
	if got := within(t, "the refusal", a.docs.answers); !strings.HasPrefix(got, `5 error {"code":-32603`) {
		t.Error(got)
	}
	b := newAsker(t, 1, nil)
	state, _ := asked(t, b.ann.ask(byTool, first1))
	b.endForwarded()
	if got := b.ann.again(byTool, state, `{}`); !strings.Contains(got, `"cancelled":true`) {
		t.Errorf("it went on: %s", got)
	}
}
