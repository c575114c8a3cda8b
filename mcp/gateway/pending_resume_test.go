package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// cancels is a server's word that it does not wait for an answer any more.
func cancels(id string) wire.Message {
	return wire.Message{Method: methodCancelled, Params: jsontext.Value(`{"requestId":` + id + `}`)}
}

// names are those of the questions of an answer that asks.
func names(t *testing.T, message string) (state string, all []string) {
	t.Helper()
	state, requests := asked(t, message)
	wire.Each(requests, func(p wire.Piece) { all = append(all, p.Name) })
	return state, all
}

func TestQuestionsThatCannotBeReadAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name, method, params string
		refused              bool
	}{
		{"array", "elicitation/create", `[{"message":"a"}]`, true},
		{"text", "elicitation/create", `"a"`, true},
		{"null", "elicitation/create", `null`, true},
		{"not-json", "elicitation/create", `{"message":`, true},
		{"text-behind", "elicitation/create", `{"message":"a"}{}`, true},
		{"a-name-twice", "elicitation/create", `{"message":"a","message":"b"}`, true},
		{"a-name-twice-in-escapes", "elicitation/create", `{"message":"a","m\u0065ssage":"b"}`, true},
		{"a-name-twice-within", "elicitation/create", `{"requestedSchema":{"type":"object","type":"array"}}`, true},
		{"a-name-twice-beside-a-token", "elicitation/create", `{"_meta":{"progressToken":1,"k":1,"k":2},"message":"a"}`, true},
		{"broken-text", "elicitation/create", "{\"message\":\"\xff\"}", true},
		{"empty", "elicitation/create", `{}`, false},
		{"with-a-token", "elicitation/create", askForm, false},
		{"none", "roots/list", ``, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAsker(t, 0, nil)
			a.judge.decide = func(ctx context.Context, call *Ask) Answer {
				_, _ = call.Link(ctx)
				id, answer := a.next()
				m := wire.Message{ID: jsontext.Value(id), Method: tc.method}
				if tc.params != "" {
					m.Params = jsontext.Value(tc.params)
				}
				call.Relay(m)
				return Answer{Native: true, Result: jsontext.Value(`{"told":` + string(wire.Quote(<-answer)) + `}`)}
			}
			got := a.ann.ask(byTool, first1)
			if !tc.refused {
				state, _ := asked(t, got)
				if got = a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, `10 result {}`) {
					t.Error(got)
				}
				return
			}
			if !strings.Contains(got, `10 error {\"code\":-32602,`) {
				t.Error(got)
			}
			if len(a.passed) > 0 || a.room() != 0 {
				t.Errorf("%d bytes are taken, and recorded was %q", a.room(), a.passed)
			}
		})
	}
}

// TestARepetitionIsAskedWhatItDeclares: capabilities are those of each request.
func TestARepetitionIsAskedWhatItDeclares(t *testing.T) {
	const all = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
	for _, tc := range []struct {
		name, can, gives string
		asks             []string // what the repetition is asked
		told             string   // what the server was told then
	}{
		{"the-same", all, `{}`, []string{"q1", "q2", "q3"}, ""},
		{"spelled-otherwise", `{"roots":{"listChanged":true},"sampling":{},"elicitation":{"url":{},"form":{}}}`, `{}`, []string{"q1", "q2", "q3"}, ""},
		{"fewer", `{"elicitation":{"form":{},"url":{}}}`, `{}`, []string{"q1", "q2"}, "12 error -32601"},
		{"a-mode-less", `{"elicitation":{"form":{}},"sampling":{}}`, `{}`, []string{"q1", "q3"}, "11 error -32601"},
		{"fewer-and-an-answer-to-another", `{"sampling":{}}`, `{"q1":{}}`, []string{"q3"}, "10 result {};11 error -32601"},
		{"an-answer-to-what-it-does-not-declare", `{"elicitation":{"url":{}}}`, `{"q3":{}}`, []string{"q2"}, "12 result {};10 error -32601"},
		{"none", `{}`, `{}`, nil, "10 error -32601;11 error -32601;12 error -32601"},
		{"null", `null`, `{}`, nil, "10 error -32601;11 error -32601;12 error -32601"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0, nil)
				a.ann.can = all
				var told []string
				a.docs.told = func(id, message string) {
					if code := jsontext.Value(strings.TrimPrefix(message, id+" error ")); strings.Contains(message, " error ") {
						message = id + " error " + string(wire.Member(code, "code"))
					}
					told = append(told, message)
				}
				a.judge.decide = func(ctx context.Context, call *Ask) Answer {
					_, _ = call.Link(ctx)
					call.Relay(elicits("10"))
					call.Relay(wire.Message{ID: jsontext.Value("11"), Method: "elicitation/create", Params: jsontext.Value(`{"mode":"url","url":"https://x.example"}`)})
					call.Relay(wire.Message{ID: jsontext.Value("12"), Method: "sampling/createMessage", Params: jsontext.Value(`{}`)})
					<-a.goOn
					return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
				}
				state, _ := asked(t, a.ann.ask(byTool, first1))
				line := a.docs.link()
				synctest.Wait()
				a.ann.can = tc.can
				over := make(chan string, 1)
				go func() { over <- a.ann.again(byTool, state, tc.gives) }()
				time.Sleep(ask.CollectTime)
				synctest.Wait()
				if diff := cmp.Diff(tc.told, strings.Join(told, ";")); diff != "" {
					t.Errorf("the server was told (-want +got):\n%s", diff)
				}
				if tc.asks != nil {
					if _, asks := names(t, <-over); !cmp.Equal(tc.asks, asks) {
						t.Errorf("the client is asked %q", asks)
					}
					a.ann.can = all
					go func() { over <- a.ann.again(byTool, state, `{"q1":{},"q2":{},"q3":{}}`) }()
					synctest.Wait()
				}
				a.goOn <- ""
				if got := <-over; !strings.Contains(got, `"content":[]`) {
					t.Errorf("in the end: %s", got)
				}
				if n := a.room(); n != 0 || len(told) != 3 {
					t.Errorf("%d bytes are taken; the server was told %q", n, told)
				}
				within(t, "the end of the session: the server may remember what it was told", line.done)
			})
		})
	}
}

// TestARepetitionIsShownNothingThatItCannotOpen: who says that no URL can be opened gets the answer itself.
func TestARepetitionIsShownNothingThatItCannotOpen(t *testing.T) {
	const all, fewer = `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"form":{}}}`
	for _, tc := range []struct{ name, can, want string }{
		{"it-can", all, `"url":"https://decide.example/1"`},
		{"it-cannot", fewer, `"content":["held"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAsker(t, 0, nil)
			a.ann.can = all
			a.judge.decide = func(ctx context.Context, call *Ask) Answer {
				_, _ = call.Link(ctx)
				a.turn(ctx, 1, call.Relay)
				call.Show("https://decide.example/1", "A person has to decide.", "run1")
				return Answer{Result: jsontext.Value(`{"content":["held"]}`)}
			}
			state, _ := asked(t, a.ann.ask(byTool, first1))
			a.ann.can = tc.can
			if got := a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, tc.want) {
				t.Error(got)
			}
		})
	}
}

// TestQuestionsThatComeMeanwhileGoByTheRequestThatWaits: they are refused before anything is recorded, and asked again of one who can.
func TestQuestionsThatComeMeanwhileGoByTheRequestThatWaits(t *testing.T) {
	a := newAsker(t, 2, nil)
	state, _ := asked(t, a.ann.ask(byTool, first1))
	a.ann.can = `{"roots":{}}`
	got := a.ann.again(byTool, state, `{"q1":{}}`)
	if !strings.Contains(got, `10 result {};11 error {\"code\":-32601`) {
		t.Error(got)
	}
	if n := strings.Count(strings.Join(a.passed, ","), ToClient); n != 1 {
		t.Errorf("recorded was %q", a.passed)
	}
	a = newAsker(t, 3, nil)
	can := a.ann.can
	a.ann.can = `{"elicitation":{}}`
	state, _ = asked(t, a.ann.ask(byTool, first1))
	a.ann.can = can // more than the server was told
	state, _ = asked(t, a.ann.again(byTool, state, `{"q1":{}}`))
	a.ann.can = `{"elicitation":{},"roots":{}}`
	state, _ = asked(t, a.ann.again(byTool, state, `{"q2":{}}`))
	if got := a.ann.again(byTool, state, `{"q3":{}}`); !strings.Contains(got, `12 result {}`) {
		t.Error(got)
	}
}

// An overtaking is what a server says, and which of its questions are left.
type overtaking struct {
	name string
	says func(a *asker, call *Ask)
	asks string
}

// idOf is an id of a length.
func idOf(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }

func overtakings() []overtaking {
	tell := func(a *asker, all ...wire.Message) {
		for _, m := range all {
			a.docs.link().peer.Tell(m)
			synctest.Wait()
		}
	}
	many := func(n int) (all []wire.Message) {
		for i := range n {
			all = append(all, cancels(fmt.Sprint(1000+i)))
		}
		return all
	}
	long := idOf(wire.MaxID)
	return []overtaking{
		{"beside-the-stream", func(a *asker, _ *Ask) { tell(a, cancels(`10`), elicits(`10`), elicits(`11`)) }, "11"},
		{"on-the-stream", func(a *asker, call *Ask) {
			call.Relay(cancels(`10`))
			call.Relay(elicits(`10`))
			call.Relay(elicits(`11`))
		}, "11"},
		{"beside-for-one-on-it", func(a *asker, call *Ask) {
			tell(a, cancels(`10`))
			call.Relay(elicits(`10`))
			call.Relay(elicits(`11`))
		}, "11"},
		{"in-time", func(a *asker, _ *Ask) { tell(a, elicits(`10`), cancels(`10`), elicits(`11`)) }, "11"},
		{"several", func(a *asker, _ *Ask) {
			tell(a, cancels(`10`), cancels(`"s"`), elicits(`"s"`), elicits(`11`), elicits(`10`))
		}, "11"},
		{"once", func(a *asker, _ *Ask) { tell(a, cancels(`10`), elicits(`10`), elicits(`10`), elicits(`11`)) }, "10 11"},
		{"another-spelling-is-another-id", func(a *asker, _ *Ask) { tell(a, cancels(`"10"`), elicits(`10`)) }, "10"},
		{"longest-id", func(a *asker, _ *Ask) { tell(a, cancels(long), elicits(long), elicits(`11`)) }, "11"},
		{"at-the-limit", func(a *asker, _ *Ask) { tell(a, append(many(ask.MaxCancelled), elicits(`1000`), elicits(`11`))...) }, "11"},
		{"one-past", func(a *asker, _ *Ask) {
			tell(a, append(many(ask.MaxCancelled+1), elicits(`1001`), elicits(`1000`), elicits(`11`))...)
		}, "1000 11"},
		{"another-link", func(a *asker, call *Ask) {
			tell(a, cancels(`10`))
			a.docs.link().Close()
			_, _ = call.Link(context.Background())
			tell(a, elicits(`10`), elicits(`11`))
		}, "10 11"},
	}
}

// TestWithdrawalsThatOvertakeTheirQuestions: beside the stream of a call questions are passed on one beside the other.
func TestWithdrawalsThatOvertakeTheirQuestions(t *testing.T) {
	for _, tc := range overtakings() {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0, nil)
				told, said := make(map[string]bool), make(chan struct{})
				a.docs.told = func(id, _ string) { told[id] = true }
				a.judge.decide = func(ctx context.Context, call *Ask) Answer {
					_, _ = call.Link(ctx)
					tc.says(a, call)
					close(said)
					for range strings.Fields(tc.asks) {
						<-a.goOn
					}
					return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
				}
				state, _ := asked(t, a.ann.ask(byTool, first1))
				<-said
				synctest.Wait()
				left := strings.Fields(tc.asks)
				if n := strings.Count(strings.Join(a.passed, ","), ToClient); tc.name != "in-time" && n != len(left) {
					t.Errorf("recorded was %q", a.passed)
				}
				if len(told) > 0 {
					t.Errorf("the server was told of %v", told)
				}
				for range left {
					a.goOn <- ""
				}
				synctest.Wait()
				if got := a.ann.again(byTool, state, `{}`); !strings.Contains(got, `"content":[]`) || a.room() != 0 {
					t.Errorf("%d bytes are taken: %s", a.room(), got)
				}
				synctest.Wait()
				if got := strings.Join(slices.Sorted(maps.Keys(told)), " "); got != tc.asks { // they are refused in the end
					t.Errorf("open were %s, want %s", got, tc.asks)
				}
			})
		})
	}
}

// TestWithdrawnWhileItIsRecorded: to record a question takes time. What it had room for is free again.
func TestWithdrawnWhileItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *asker
		first := true
		a = newAsker(t, 0, func(o *Options) {
			passed := o.Passed
			o.Passed = func(ctx context.Context, p Passed) error {
				if p.Direction == ToClient && first {
					first = false
					a.docs.link().peer.Tell(cancels(`10`))
				}
				return passed(ctx, p)
			}
		})
		var told []string
		a.docs.told = func(id, _ string) { told = append(told, id) }
		large := jsontext.Value(`{"message":"` + strings.Repeat("x", ask.MaxQuestionBytes-len(`{"message":""}`)) + `"}`)
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			for _, id := range []string{"10", "11"} {
				call.Relay(wire.Message{ID: jsontext.Value(id), Method: "elicitation/create", Params: large})
			}
			<-a.goOn
			return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
		}
		state, asks := names(t, a.ann.ask(byTool, first1))
		if len(asks) != 1 {
			t.Errorf("asked is %q", asks)
		}
		a.goOn <- ""
		synctest.Wait()
		if got := a.ann.again(byTool, state, `{}`); !strings.Contains(got, `"content":[]`) || a.room() != 0 {
			t.Errorf("%d bytes are taken: %.200s", a.room(), got)
		}
		synctest.Wait()
		if !slices.Equal(told, []string{"11"}) { // it is refused in the end
			t.Errorf("open was %q, want 11", told)
		}
	})
}

// TestWhatIsSaidGoesByTheRequestThatWaits: by its progress token and its log level, whoever says it, as far as the first wanted it, too.
func TestWhatIsSaidGoesByTheRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0, nil)
		log := func(level string) wire.Message {
			return wire.Message{Method: "notifications/message", Params: jsontext.Value(`{"level":"` + level + `","data":1}`)}
		}
		wants := []struct {
			token, level string
			receives     []string
		}{
			{`"one"`, "warning", []string{`{"progressToken":"one","progress":0}`, `{"level":"warning","data":1}`, `{"level":"critical","data":1}`}},
			{`"two"`, "error", []string{`{"progressToken":"two","progress":1}`, `{"level":"critical","data":1}`}},
			{``, "", nil},
			{`3`, "debug", []string{`{"progressToken":3,"progress":3}`, `{"level":"warning","data":1}`, `{"level":"critical","data":1}`}},
			{`null`, `loud`, nil},
			{`{}`, ``, nil},
		}
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			for i := range wants {
				call.Say(float64(i), 0, "")
				for _, level := range []string{"info", "warning", "critical"} {
					call.Relay(log(level))
				}
				if i < len(wants)-1 {
					id, answer := a.next()
					call.Relay(elicits(id))
					<-answer
					synctest.Wait() // until the request that answers waits
				}
			}
			return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
		}
		params := `{"name":"echo"`
		for i, w := range wants {
			meta := ""
			if w.token != "" {
				meta += `,"progressToken":` + w.token
			}
			if w.level != "" {
				meta += `,"` + metaLogLevel + `":"` + w.level + `"`
			}
			answer := a.ann.ask(byTool, params+`,"_meta":`+a.ann.meta(meta)+`}`)
			if i < len(wants)-1 {
				state, _ := asked(t, answer)
				params = fmt.Sprintf(`{"name":"echo","requestState":%s,"inputResponses":{"q%d":{}}`, state, i+1)
			}
			var got []string
			for _, m := range a.ann.received() {
				got = append(got, string(wire.Member([]byte(m), "params")))
			}
			if diff := cmp.Diff(w.receives, got); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
		}
	})
}
