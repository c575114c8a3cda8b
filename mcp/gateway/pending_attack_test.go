package gateway

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// asksOnce has the server ask one question in the middle of a call, and go on with then.
func (a *asker) asksOnce(then func(ctx context.Context, call *Ask, answer <-chan string) jsontext.Value) {
	a.judge.decide = func(ctx context.Context, call *Ask) Answer {
		_, _ = call.Link(ctx)
		id, answer := a.next()
		call.Relay(elicits(id))
		return Answer{Native: true, Judged: Judged{Run: "run"}, Result: then(ctx, call, answer)}
	}
}

// room is what is taken of the room for large messages.
func (r *rig) room() int {
	return r.table.Bodies.Taken()
}

// TestABugInAPendingRequestCostsOneAnswer: net/http and the gateway's own connections survive a bug in a request, so this does too.
func TestABugInAPendingRequestCostsOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0, nil)
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			panic("a bug")
		}
		if got := a.ann.ask(byTool, first1); !strings.Contains(got, `"code":-32603`) || strings.Contains(got, "bug") {
			t.Errorf("before a question: %s", got)
		}
		a.asksOnce(func(_ context.Context, _ *Ask, answer <-chan string) jsontext.Value {
			<-answer
			panic("a bug")
		})
		state, _ := asked(t, a.ann.ask(byTool, first1))
		if got := a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, `"code":-32603`) {
			t.Errorf("after one: %s", got)
		}
		if n := len(a.asks.All()); n != 0 || a.room() != 0 {
			t.Errorf("%d pending requests and %d bytes are left", n, a.room())
		}
		if n := len(a.docs.links); n != 2 { // one to learn what the server is, and one that both calls used
			t.Errorf("%d links", n)
		}
	})
}

// TestQuestionsAreBoundedInBytes: a server may say 16 MiB at once, and 64 of these would be a gigabyte for one call.
func TestQuestionsAreBoundedInBytes(t *testing.T) {
	const some = 1 << 20
	large := func(id string, size int) wire.Message {
		begin, end := `{"message":"`, `"}`
		return wire.Message{ID: jsontext.Value(id), Method: "elicitation/create",
			Params: jsontext.Value(begin + strings.Repeat("x", size-len(begin)-len(end)) + end)}
	}
	for _, tc := range []struct {
		name    string
		room    int   // for all messages; half of it is one client's
		sizes   []int // negative: withdrawn; zero: the answer is waited for
		refused bool  // the last question
	}{
		{"at-the-limit", 0, []int{some, ask.MaxQuestionBytes - some}, false},
		{"one-past", 0, []int{some, ask.MaxQuestionBytes - some + 1}, true},
		{"one-that-is-larger-than-all-may-be", 0, []int{ask.MaxQuestionBytes + 1}, true},
		{"as-much-as-there-is-room", 4 * some, []int{some, some}, false},
		{"one-byte-more-than-there-is-room", 4 * some, []int{some, some + 1}, true},
		{"what-was-withdrawn-counts-no-more", 0, []int{-ask.MaxQuestionBytes, ask.MaxQuestionBytes}, false},
		{"what-was-answered-counts-no-more", 0, []int{ask.MaxQuestionBytes, 0, ask.MaxQuestionBytes}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0, func(o *Options) { o.Limits.BodiesBytes = tc.room })
				a.judge.decide = func(ctx context.Context, call *Ask) Answer {
					_, _ = call.Link(ctx)
					var last chan string
					for _, size := range tc.sizes {
						if size == 0 {
							<-last
							continue
						}
						var id string
						id, last = a.next()
						call.Relay(large(id, max(size, -size)))
						if size < 0 {
							call.Relay(wire.Message{Method: methodCancelled, Params: jsontext.Value(`{"requestId":` + id + `}`)})
						}
					}
					return Answer{Native: true, Result: jsontext.Value(`{"told":` + string(wire.Quote(<-last)) + `}`)}
				}
				got := a.ann.ask(byTool, first1)
				for strings.Contains(got, "input_required") {
					state, requests := asked(t, got)
					synctest.Wait()
					var answers wire.Object
					wire.Each(requests, func(p wire.Piece) { answers.Add(p.Name, []byte(`{}`)) })
					got = a.ann.again(byTool, state, string(answers.Done()))
				}
				if refused := strings.Contains(got, `error {\"code\":-32603`); refused != tc.refused || !strings.Contains(got, "told") {
					t.Error(got)
				}
				if n := a.room(); n != 0 {
					t.Errorf("%d bytes are taken", n)
				}
			})
		})
	}
}

// TestOutcomesThatWaitHaveRoom: they wait for five minutes, and may have 16 MiB.
func TestOutcomesThatWaitHaveRoom(t *testing.T) {
	const room = 8 * session.Small // for all; half of it is one client's
	for _, tc := range []struct {
		name  string
		size  int
		taken bool
		kept  bool
	}{{"little", session.Small / 2, false, true}, {"much", 3 * session.Small, true, true}, {"more-than-there-is-room", 4 * session.Small, false, false}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0, func(o *Options) { o.Limits.BodiesBytes = room })
				a.asksOnce(func(context.Context, *Ask, <-chan string) jsontext.Value {
					return jsontext.Value(`{"content":"` + <-a.goOn + strings.Repeat("x", tc.size) + `"}`)
				})
				state, _ := asked(t, a.ann.ask(byTool, first1))
				a.goOn <- "done"
				synctest.Wait()
				if n := a.room(); n > tc.size != tc.taken {
					t.Errorf("while it waits %d bytes are taken", n)
				}
				if got := a.ann.again(byTool, state, `{}`); strings.Contains(got, "done") != tc.kept || !tc.kept && !strings.Contains(got, `"code":-32602`) {
					t.Errorf("it was answered with %d bytes: %.200s", len(got), got)
				}
				if n := len(a.asks.All()); n != 0 || a.room() != 0 {
					t.Errorf("%d pending requests and %d bytes are left", n, a.room())
				}
			})
		})
	}
}

// TestCapabilitiesMakeNoMoreLinks: else one client could have all that there are, by declaring in each request something else.
func TestCapabilitiesMakeNoMoreLinks(t *testing.T) {
	r := newRig(t, "docs mail", nil)
	docs := r.servers["docs"]
	take := func(who, server, can string) *link {
		c := r.modern(server, can)
		c.from = Identity{Name: who}
		q := c.readRequest()
		l, err := r.linkTo(t.Context(), q, r.active.Load().endpoints[server].server)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	cans := []string{`{"sampling":{}}`, `{"elicitation":{}}`, `{"roots":{}}`, `{"sampling":{},"roots":{}}`}
	take("ann", "docs", `{}`) // what the server is, is known now
	take("ann", "mail", `{}`)
	var held []*link
	for i := range maxDedicated {
		held = append(held, take("ann", "docs", cans[i%len(cans)]))
		if held[i].slot.key.dedicated == 0 {
			t.Fatalf("the %dth is shared", i)
		}
	}
	if l := take("ann", "docs", cans[0]); l.slot.key.dedicated != 0 || l.slot.key.capabilities != `{}` {
		t.Errorf("one past the limit: %+v", l.slot.key)
	}
	for _, l := range []*link{take("bob", "docs", cans[0]), take("ann", "mail", cans[0])} {
		if l.slot.key.dedicated == 0 {
			t.Errorf("another client, or another server: %+v", l.slot.key)
		}
	}
	before := len(docs.links)
	held[0].release()
	if l := take("ann", "docs", cans[0]); l != held[0] {
		t.Error("what was given back is not used again")
	}
	held[1].release()
	if l := take("ann", "docs", cans[0]); l.slot.key.dedicated == 0 || len(docs.links) != before+1 {
		t.Errorf("in place of one that nobody uses: %+v, %d links", l.slot.key, len(docs.links))
	}
	within(t, "the end of the one that nobody used", held[1].Done())
}

// TestWhatTheServerIsStillAtAsksNoOther: a request that was given up may be under way at the server, which asks later what it wants to
// know for it. Whoever had the line next would be asked.
func TestWhatTheServerIsStillAtAsksNoOther(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(a *asker, state string, cancel func())
	}{
		{"client-gone", func(_ *asker, _ string, cancel func()) { cancel() }},
		{"time-over-while-it-asks", func(a *asker, _ string, _ func()) { a.goOn <- "" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 1, nil)
				a.ann.ask("tools/list", "{}") // what the server is, is known now
				a.asksOnce(func(ctx context.Context, call *Ask, answer <-chan string) jsontext.Value {
					select {
					case <-a.goOn:
					case <-ctx.Done():
					case <-answer:
					}
					return jsontext.Value(`{"content":[]}`)
				})
				state, _ := asked(t, a.ann.ask(byTool, first1))
				first := a.docs.link()
				ctx, cancel := context.WithCancel(t.Context())
				params, _ := wire.Set([]byte(first1[:len(first1)-1]+`,"requestState":`+state+`}`), "_meta", []byte(a.ann.meta("")))
				if tc.name == "client-gone" { // it comes back, and goes
					e := a.onlyPending()
					e.CancelQuestion(jsontext.Value(`10`))
					go a.dispatch(ctx, a.ann.request(`8`, byTool, string(params)))
					synctest.Wait()
				}
				tc.end(a, state, cancel)
				synctest.Wait()
				cancel()
				if !isClosed(first.done) {
					t.Error("it has not ended")
				}
				a.asksOnce(func(_ context.Context, _ *Ask, answer <-chan string) jsontext.Value { return jsontext.Value(`{}`) })
				a.ann.ask(byTool, first1)
				if a.docs.link() == first {
					t.Error("the next request has it")
				}
			})
		})
	}
}

// A told link keeps what it was told.
type toldLink struct {
	upstreamSession
	ids []string
}

func (l *toldLink) Answer(ctx context.Context, id, result, failed jsontext.Value) error {
	l.ids = append(l.ids, string(id))
	return l.upstreamSession.Answer(ctx, id, result, failed)
}

// TestQuestionsAreAnsweredWhereTheyCameFrom: a link may end and another take its place before the call is made. Ids come again there.
func TestQuestionsAreAnsweredWhereTheyCameFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0, nil)
		a.docs.told = func(string, string) {}
		var links []*toldLink
		join := a.connect
		a.connect = func(ctx context.Context, server *server, p upstream.Peer) (upstreamSession, error) {
			l, err := join(ctx, server, p)
			links = append(links, &toldLink{upstreamSession: l})
			return links[len(links)-1], err
		}
		a.ann.ask("tools/list", "{}")
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			call.Relay(elicits(`5`))
			links[len(links)-1].Close()
			_, _ = call.Link(ctx)
			return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
		}
		a.ann.ask(byTool, first1)
		synctest.Wait()
		if first, last := links[len(links)-2], links[len(links)-1]; len(last.ids) > 0 || fmt.Sprint(first.ids) != "[5]" {
			t.Errorf("the first was told %s, the last %s", first.ids, last.ids)
		}
	})
}

// TestAnswersThatComeTooLate: to record an answer takes time. When the call is over meanwhile, the line may be another request's.
func TestAnswersThatComeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *asker
		a = newAsker(t, 1, func(o *Options) {
			passed := o.Passed
			o.Passed = func(ctx context.Context, p Passed) error {
				if p.Direction == ToServer {
					e := a.onlyPending()
					a.goOn <- "without it"
					<-e.Done()
				}
				return passed(ctx, p)
			}
		})
		state, _ := asked(t, a.ann.ask(byTool, first1))
		if got := a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, `"told":"without it"`) {
			t.Error(got)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.waits["10"]); n != 0 {
			t.Errorf("it was told %s", <-a.waits["10"])
		}
	})
}

// TestATokenOfAToolIsNotThatOfAMethod: a tool may be named like one.
func TestATokenOfAToolIsNotThatOfAMethod(t *testing.T) {
	const params = `{"name":"prompts/get"`
	a := newAsker(t, 1, nil)
	state, _ := asked(t, a.ann.ask(byTool, params+`}`))
	if got := a.ann.ask(byPrompt, params+`,"requestState":`+state+`,"inputResponses":{"q1":{}}}`); !strings.Contains(got, `"code":-32602`) {
		t.Errorf("as a prompt: %s", got)
	}
	if got := a.ann.ask(byTool, params+`,"requestState":`+state+`,"inputResponses":{"q1":{}}}`); !strings.Contains(got, `10 result {}`) {
		t.Errorf("as the tool: %s", got)
	}
}

// TestStatesAreUsedOnce: what a client repeats with a state makes no call, whatever became of the first.
func TestStatesAreUsedOnce(t *testing.T) {
	a := newAsker(t, 1, nil)
	state, _ := asked(t, a.ann.ask(byTool, first1))
	spelled := `"\u00` + fmt.Sprintf("%02x", state[1]) + state[2:]
	for i, responses := range []string{`{}`, `{"q2":{},"":{}}`, `{"q1":{}}`, `{"q1":{}}`, `{}`} {
		got := a.ann.again(byTool, spelled, responses)
		if want := []string{`"q1":{`, `"q1":{`, `10 result {}`, `"code":-32602`, `"code":-32602`}[i]; !strings.Contains(got, want) {
			t.Errorf("%d: %s", i, got)
		}
	}
	if n := len(a.judge.asked); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestNothingIsRepeatedForNothing: a result that asks for input and says neither what nor by which state would have the same call made
// again.
func TestNothingIsRepeatedForNothing(t *testing.T) {
	for _, result := range []string{
		`{"resultType":"input_required"}`, `{"inputRequests":{}}`, `{"resultType":"input_required","inputRequests":null,"requestState":null}`,
	} {
		for _, method := range []string{byTool, byPrompt} {
			p := newPager(t, nil, result, inTheEnd)
			if got := p.ask(method); !strings.Contains(got, `"code":"input_refused"`) || len(p.rounds) != 1 {
				t.Errorf("%s of %s: %d requests: %s", method, result, len(p.rounds), got)
			}
		}
	}
}

// TestAnswersInRoundsAreBounded: each comes in a message of its own, and waits for the others.
func TestAnswersInRoundsAreBounded(t *testing.T) {
	const limit = 1000
	two := `{"f":{"method":"roots/list"},"s":{"method":"roots/list"}}`
	for _, tc := range []struct {
		name   string
		second int // bytes of the second answer; the first has half of the limit
		room   int // for all messages; half of it is one client's
		want   string
	}{
		{"at-the-limit", limit / 2, 0, inTheEnd},
		{"one-past", limit/2 + 1, 0, "or too much"},
		{"as-much-as-there-is-room", limit / 2, 2 * limit, inTheEnd},
		{"no-room", limit / 2, 2*limit - 2, "or too much"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPager(t, func(o *Options) { o.Limits.BodyBytes, o.Limits.BodiesBytes = limit, tc.room }, wants(two, "s"), inTheEnd)
				var between int
				p.replies = func(n int, m wire.Message) (string, string) {
					size := limit / 2
					if n == 2 {
						size, between = tc.second, p.room()
					}
					return `{"":"` + strings.Repeat("x", size-len(`{"":""}`)) + `"}`, ""
				}
				if got := p.ask(byTool); !strings.Contains(got, tc.want) {
					t.Error(got)
				}
				synctest.Wait()
				if n := p.room(); n != 0 || between != limit/2 {
					t.Errorf("%d bytes were taken, and %d are", between, n)
				}
			})
		})
	}
}

// TestWhatAServerWasToldStaysThere: a server may remember what a client told it, so no other client gets its session.
func TestWhatAServerWasToldStaysThere(t *testing.T) {
	a := newAsker(t, 1, nil)
	state, _ := asked(t, a.ann.ask(byTool, first1))
	line := a.docs.link()
	if got := a.ann.again(byTool, state, `{"q1":{}}`); !strings.Contains(got, "result {}") {
		t.Fatal(got)
	}
	within(t, "the end of the session", line.done)
	a.judge.decide = func(ctx context.Context, call *Ask) Answer {
		_, _ = call.Link(ctx)
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
	n := len(a.docs.links)
	for range 2 {
		a.ann.ask(byTool, first1)
	}
	if got := len(a.docs.links); got != n+1 {
		t.Errorf("%d sessions more, want one: nothing was asked", got-n)
	}
}

// TestALinkOnWhichARequestWasGivenUpServesNoOther: also where nothing was asked yet.
func TestALinkOnWhichARequestWasGivenUpServesNoOther(t *testing.T) {
	a := newAsker(t, 0, nil)
	a.ann.ask(byTool, first1)
	first := a.docs.link()
	a.ann.ask(byTool, first1)
	if a.docs.link() != first {
		t.Fatal("every request has another link")
	}
	first.gaveUp.Store(true)
	a.ann.ask(byTool, first1)
	within(t, "its end", first.done)
	a.ann.ask(byTool, first1)
	if a.docs.link() == first {
		t.Error("the next request has it")
	}
}

// TestQuestionsThatComeLateAreNobodyElses: a server that asks beside the stream of a call and answers right behind.
func TestQuestionsThatComeLateAreNobodyElses(t *testing.T) {
	for range 50 {
		a := newAsker(t, 0, nil)
		a.ann.ask("tools/list", `{}`)
		first, refused := true, make(chan string, 1)
		a.docs.told = func(_, message string) { refused <- message }
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			_, _ = call.Link(ctx)
			if first {
				first = false
				a.docs.link().peer.Tell(elicits("1"))
			} else {
				<-refused // or the second call is asked, and answers before it ends
			}
			return Answer{Native: true, Result: jsontext.Value(`{}`)}
		}
		a.ann.ask(byTool, first1)
		if got := a.ann.ask(byTool, `{"name":"echo","arguments":{"n":2}}`); strings.Contains(got, "input_required") {
			t.Fatalf("the second call was asked: %s", got)
		}
	}
}

// TestPendingRequestsOverStdioEndWithTheClient: nobody can come back for them.
func TestPendingRequestsOverStdioEndWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 1, nil)
		ended := make(chan struct{})
		inner := a.judge.decide
		a.judge.decide = func(ctx context.Context, call *Ask) Answer {
			defer close(ended)
			return inner(ctx, call)
		}
		in, w := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- a.ServeStdio(t.Context(), in, io.Discard, Identity{Name: "ann"}) }()
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"docs__echo","_meta":` + a.ann.meta("") + `}}` + "\n"
		if _, err := io.WriteString(w, call); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(a.asks.All()); n != 1 {
			t.Fatalf("%d pending requests", n)
		}
		begun := time.Now()
		_ = w.Close()
		<-done
		<-ended
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the call ended after %s", took)
		}
		time.Sleep(ask.KeepAnswer + time.Second)
	})
}

// TestStoppingWaitsForPendingRequests: their servers are told before their sessions end, as long as that takes no longer than it may.
func TestStoppingWaitsForPendingRequests(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		want  time.Duration
	}{{"at-once", 0, 0}, {"in-time", ask.CancelGrace - time.Second, ask.CancelGrace - time.Second}, {"too-late", ask.CancelGrace + time.Second, ask.CancelGrace}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 1, nil)
				a.docs.told = func(string, string) { time.Sleep(tc.takes) }
				asked(t, a.ann.ask(byTool, first1))
				begun := time.Now()
				a.endForwarded()
				if took := time.Since(begun); took != tc.want {
					t.Errorf("it took %s", took)
				}
				synctest.Wait()
				within(t, "the end of the session", a.docs.link().done)
				time.Sleep(ask.KeepAnswer + time.Second)
			})
		})
	}
}
