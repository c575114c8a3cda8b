package upstream

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/mcp/wire"
)

// ignoreMessage is asked: who takes a question does not answer it.
func ignoreMessage(wire.Message) {}

// A pause is what happens in a call, when it is over, and with which code.
type pause struct {
	name  string
	play  func(t *testing.T, s *linkFixture, c *fixtureCall)
	after time.Duration
	code  string
}

var pauses = []pause{
	{"nothing-is-asked", func(*testing.T, *linkFixture, *fixtureCall) {}, callTime, CodeTimeout},
	{"a-person-takes-a-minute", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.waitUntil(callTime - 1)
		c.askClient("7")
		c.waitUntil(time.Minute)
		s.answerRequest(t, "7")
		c.answerCall()
	}, time.Minute, ""},
	{"the-question-comes-with-the-end", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.waitUntil(callTime)
		c.askClient("7")
	}, callTime, CodeTimeout},
	{"several-questions-at-once", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.waitUntil(2 * time.Second)
		c.askClient("7")
		c.waitUntil(3 * time.Second)
		c.askClient(`"b"`)
		c.waitUntil(20 * time.Second)
		s.answerRequest(t, "7")
		c.waitUntil(time.Minute)
		s.answerRequest(t, `"b"`)
	}, time.Minute + 8*time.Second, CodeTimeout},
	{"withdrawn", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.askClient("7")
		c.waitUntil(time.Minute)
		c.withdrawRequest("7")
		c.withdrawRequest("7")
		c.waitUntil(time.Minute + time.Second)
		s.answerRequest(t, "7")
	}, time.Minute + callTime, CodeTimeout},
	{"the-call-ends-while-a-question-is-open", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.askClient("7")
		c.waitUntil(time.Minute)
		c.answerCall()
	}, time.Minute, ""},
	{"the-link-ends-while-a-question-is-open", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.askClient("7")
		c.waitUntil(time.Minute)
		s.link.fail(CodeDied, "it is gone")
	}, time.Minute, CodeDied},
	{"the-answer-is-not-taken", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		s.deaf = true
		c.askClient("7")
		c.waitUntil(time.Minute)
		go s.answerRequest(t, "7")
	}, time.Minute + callTime, CodeTimeout},
	{"nobody-answers", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.waitUntil(4 * time.Second)
		c.askClient("7")
	}, DefaultTimeoutTotal, CodeTimeout},
	{"answered-at-the-most", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		c.askClient("7")
		c.waitUntil(DefaultTimeoutTotal)
		s.answerRequest(t, "7")
	}, DefaultTimeoutTotal, CodeTimeout},
	{"the-server-asks-again-and-again", func(t *testing.T, s *linkFixture, c *fixtureCall) {
		for n := range 20 {
			c.askClient("7")
			c.waitUntil(time.Duration(n+1) * time.Minute)
			s.answerRequest(t, "7")
		}
	}, DefaultTimeoutTotal, CodeTimeout},
}

// The clock of a call stands still while its server waits for people, whichever way the question comes.
func TestTheTimeOfACallWhileItsServerAsks(t *testing.T) {
	for _, tt := range pauses {
		for _, kind := range []string{onOneStream, onItsStream, onNews} {
			t.Run(tt.name+"-"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newLinkFixture(t, kind, older, ignoreMessage)
					c := s.call(t.Context(), ignoreMessage)
					tt.play(t, s, c)
					c.checkEnd(t, tt.after, tt.code)
				})
			})
		}
	}
}

// Questions that the gateway refuses by itself win nothing, however many there are, and also if the server does not take the answers.
func TestRefusedQuestionsWinNoTime(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, kind := range []string{onOneStream, onItsStream, onNews} {
			t.Run(fmt.Sprintf("%s-deaf-%t", kind, deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var s *linkFixture
					refuses := func(m wire.Message) {
						if err := s.link.Answer(context.Background(), m.ID, nil, wire.ErrorObject(wire.MethodNotFound, "no", nil)); err != nil && !deaf {
							t.Errorf("Answer() = %v", err)
						}
					}
					s = newLinkFixture(t, kind, older, func(m wire.Message) { go refuses(m) })
					s.deaf = deaf
					c := s.call(t.Context(), refuses)
					var ids []string
					for n := range 30 {
						ids = append(ids, fmt.Sprint(n))
					}
					go c.askClient(ids...) // they are read as they are passed on
					<-c.over
					most := callTime // and for the refusal that is on its way when it ends
					if deaf {
						most += s.link.up.server.ConnectTimeout
					}
					if c.came.Code != CodeTimeout || c.took < callTime || c.took > most {
						t.Errorf("after %s: Call() = %+v, want %s after at most %s", c.took, c.came, CodeTimeout, most)
					}
				})
			})
		}
	}
}

// TestTheCallersTimeGoesOnWhileTheServerAsks: the caller's context ends the call.
func TestTheCallersTimeGoesOnWhileTheServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := newLinkFixture(t, onOneStream, older, ignoreMessage).call(ctx, ignoreMessage)
		c.askClient("7")
		c.checkEnd(t, time.Minute, CodeTimeout)
	})
}

// A server of the stateless revisions asks in results: what it asks in another way wins it nothing.
func TestStatelessServersWinNoTime(t *testing.T) {
	for _, kind := range []string{onOneStream, onItsStream} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newLinkFixture(t, kind, newer, ignoreMessage).call(t.Context(), ignoreMessage)
				c.askClient("7")
				c.checkEnd(t, callTime, CodeTimeout)
			})
		})
	}
}

// A question stops the clock of the call that it came with; where nobody can say which that is, those of all that are under way.
func TestWhoseClockAQuestionStops(t *testing.T) {
	for _, tt := range []struct {
		kind   string
		others time.Duration // what the other call takes
	}{
		{onOneStream, time.Minute + callTime}, {onItsStream, callTime}, {onNews, time.Minute + callTime},
	} {
		t.Run("of-two-calls-"+tt.kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLinkFixture(t, tt.kind, older, ignoreMessage)
				one, other := s.call(t.Context(), ignoreMessage), s.call(t.Context(), ignoreMessage)
				one.askClient("7")
				one.waitUntil(time.Minute)
				s.answerRequest(t, "7")
				one.checkEnd(t, time.Minute+callTime, CodeTimeout)
				other.checkEnd(t, tt.others, CodeTimeout)
				s.checkNothingWaits(t)
			})
		})
	}
	for _, kind := range []string{onOneStream, onNews} {
		t.Run("asked-before-the-call-"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLinkFixture(t, kind, older, ignoreMessage)
				(&fixtureCall{stage: s}).askClient("7")
				synctest.Wait()
				c := s.call(t.Context(), ignoreMessage)
				c.waitUntil(time.Second)
				s.answerRequest(t, "7")
				c.checkEnd(t, callTime, CodeTimeout)
			})
		})
		t.Run("asked-in-a-call-that-is-over-"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLinkFixture(t, kind, older, ignoreMessage)
				one := s.call(t.Context(), ignoreMessage)
				other := s.call(t.Context(), ignoreMessage)
				one.askClient("7") // of one of the two
				one.answerCall()
				one.checkEnd(t, 0, "")
				other.waitUntil(time.Minute)
				s.answerRequest(t, "7")
				other.checkEnd(t, time.Minute+callTime, CodeTimeout)
				s.checkNothingWaits(t)
			})
		})
	}
}

// Of other requests than calls, those in which servers of the stateless revisions could ask in the result stand still. A list has its time,
// whatever the server asks: lists have many pages, and those of all servers are waited for.
func TestTheTimeOfARequestWhileItsServerAsks(t *testing.T) {
	for _, tt := range []struct {
		method string
		pauses bool
	}{
		{"prompts/get", true}, {"resources/read", true}, {"prompts/list", false}, {"resources/list", false}, {"logging/setLevel", false},
		{"completion/complete", false}, {"resources/subscribe", false},
	} {
		for _, kind := range []string{onOneStream, onItsStream, onNews} {
			t.Run(kind+"-"+tt.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newLinkFixture(t, kind, older, ignoreMessage)
					c := &fixtureCall{stage: s, over: make(chan struct{}), since: time.Now()}
					go func() {
						defer close(c.over)
						_, err := s.link.Request(t.Context(), tt.method, nil, ignoreMessage)
						c.came, c.took = Returned{Code: err.(*LinkError).Code, Effect: EffectUnknown}, time.Since(c.since)
					}()
					c.begun = <-s.begun
					c.askClient("7")
					took := callTime
					if tt.pauses {
						took += time.Minute
						c.waitUntil(time.Minute)
						s.answerRequest(t, "7")
					}
					c.checkEnd(t, took, CodeTimeout)
					if tt.pauses {
						s.checkNothingWaits(t)
					}
				})
			})
		}
	}
}

// Nothing is left of a question that the server withdraws before it was passed on.
func TestAQuestionThatIsWithdrawnBeforeItIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLinkFixture(t, onOneStream, older, ignoreMessage)
		first := true
		c := s.call(t.Context(), func(wire.Message) {
			if first { // the second waits behind it
				first = false
				time.Sleep(time.Second)
			}
		})
		c.askClient("7")
		c.askClient("8")
		c.withdrawRequest("8")
		c.waitUntil(2 * time.Second)
		s.answerRequest(t, "7")
		c.checkEnd(t, callTime+time.Second, CodeTimeout) // the first was a second on its way
		s.checkNothingWaits(t)
	})
}
