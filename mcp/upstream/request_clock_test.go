package upstream

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/mcp/wire"
)

// nobody is asked: who takes a question does not answer it.
func nobody(wire.Message) {}

// A pause is what happens in a call, when it is over, and with which code.
type pause struct {
	name  string
	play  func(t *testing.T, s *stage, c *turn)
	after time.Duration
	code  string
}

var pauses = []pause{
	{"nothing-is-asked", func(*testing.T, *stage, *turn) {}, callTime, CodeTimeout},
	{"a-person-takes-a-minute", func(t *testing.T, s *stage, c *turn) {
		c.at(callTime - 1)
		c.asks("7")
		c.at(time.Minute)
		s.answered(t, "7")
		c.answers()
	}, time.Minute, ""},
	{"the-question-comes-with-the-end", func(t *testing.T, s *stage, c *turn) {
		c.at(callTime)
		c.asks("7")
	}, callTime, CodeTimeout},
	{"several-questions-at-once", func(t *testing.T, s *stage, c *turn) {
		c.at(2 * time.Second)
		c.asks("7")
		c.at(3 * time.Second)
		c.asks(`"b"`)
		c.at(20 * time.Second)
		s.answered(t, "7")
		c.at(time.Minute)
		s.answered(t, `"b"`)
	}, time.Minute + 8*time.Second, CodeTimeout},
	{"withdrawn", func(t *testing.T, s *stage, c *turn) {
		c.asks("7")
		c.at(time.Minute)
		c.withdraws("7")
		c.withdraws("7")
		c.at(time.Minute + time.Second)
		s.answered(t, "7")
	}, time.Minute + callTime, CodeTimeout},
	{"the-call-ends-while-a-question-is-open", func(t *testing.T, s *stage, c *turn) {
		c.asks("7")
		c.at(time.Minute)
		c.answers()
	}, time.Minute, ""},
	{"the-link-ends-while-a-question-is-open", func(t *testing.T, s *stage, c *turn) {
		c.asks("7")
		c.at(time.Minute)
		s.link.fail(CodeDied, "it is gone")
	}, time.Minute, CodeDied},
	{"the-answer-is-not-taken", func(t *testing.T, s *stage, c *turn) {
		s.deaf = true
		c.asks("7")
		c.at(time.Minute)
		go s.answered(t, "7")
	}, time.Minute + callTime, CodeTimeout},
	{"nobody-answers", func(t *testing.T, s *stage, c *turn) {
		c.at(4 * time.Second)
		c.asks("7")
	}, DefaultTimeoutTotal, CodeTimeout},
	{"answered-at-the-most", func(t *testing.T, s *stage, c *turn) {
		c.asks("7")
		c.at(DefaultTimeoutTotal)
		s.answered(t, "7")
	}, DefaultTimeoutTotal, CodeTimeout},
	{"the-server-asks-again-and-again", func(t *testing.T, s *stage, c *turn) {
		for n := range 20 {
			c.asks("7")
			c.at(time.Duration(n+1) * time.Minute)
			s.answered(t, "7")
		}
	}, DefaultTimeoutTotal, CodeTimeout},
}

// The clock of a call stands still while its server waits for people, whichever way the question comes.
func TestTheTimeOfACallWhileItsServerAsks(t *testing.T) {
	for _, tt := range pauses {
		for _, kind := range []string{onOneStream, onItsStream, onNews} {
			t.Run(tt.name+"-"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t, kind, older, nobody)
					c := s.call(t.Context(), nobody)
					tt.play(t, s, c)
					c.ends(t, tt.after, tt.code)
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
					var s *stage
					refuses := func(m wire.Message) {
						if err := s.link.Answer(context.Background(), m.ID, nil, wire.ErrorObject(wire.MethodNotFound, "no", nil)); err != nil && !deaf {
							t.Errorf("Answer() = %v", err)
						}
					}
					s = newStage(t, kind, older, func(m wire.Message) { go refuses(m) })
					s.deaf = deaf
					c := s.call(t.Context(), refuses)
					var ids []string
					for n := range 30 {
						ids = append(ids, fmt.Sprint(n))
					}
					go c.asks(ids...) // they are read as they are passed on
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
		c := newStage(t, onOneStream, older, nobody).call(ctx, nobody)
		c.asks("7")
		c.ends(t, time.Minute, CodeTimeout)
	})
}

// A server of the stateless revisions asks in results: what it asks in another way wins it nothing.
func TestStatelessServersWinNoTime(t *testing.T) {
	for _, kind := range []string{onOneStream, onItsStream} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newStage(t, kind, newer, nobody).call(t.Context(), nobody)
				c.asks("7")
				c.ends(t, callTime, CodeTimeout)
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
				s := newStage(t, tt.kind, older, nobody)
				one, other := s.call(t.Context(), nobody), s.call(t.Context(), nobody)
				one.asks("7")
				one.at(time.Minute)
				s.answered(t, "7")
				one.ends(t, time.Minute+callTime, CodeTimeout)
				other.ends(t, tt.others, CodeTimeout)
				s.nothingWaits(t)
			})
		})
	}
	for _, kind := range []string{onOneStream, onNews} {
		t.Run("asked-before-the-call-"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, kind, older, nobody)
				(&turn{stage: s}).asks("7")
				synctest.Wait()
				c := s.call(t.Context(), nobody)
				c.at(time.Second)
				s.answered(t, "7")
				c.ends(t, callTime, CodeTimeout)
			})
		})
		t.Run("asked-in-a-call-that-is-over-"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, kind, older, nobody)
				one := s.call(t.Context(), nobody)
				other := s.call(t.Context(), nobody)
				one.asks("7") // of one of the two
				one.answers()
				one.ends(t, 0, "")
				other.at(time.Minute)
				s.answered(t, "7")
				other.ends(t, time.Minute+callTime, CodeTimeout)
				s.nothingWaits(t)
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
					s := newStage(t, kind, older, nobody)
					c := &turn{stage: s, over: make(chan struct{}), since: time.Now()}
					go func() {
						defer close(c.over)
						_, err := s.link.Request(t.Context(), tt.method, nil, nobody)
						c.came, c.took = Returned{Code: err.(*LinkError).Code, Effect: EffectUnknown}, time.Since(c.since)
					}()
					c.begun = <-s.begun
					c.asks("7")
					took := callTime
					if tt.pauses {
						took += time.Minute
						c.at(time.Minute)
						s.answered(t, "7")
					}
					c.ends(t, took, CodeTimeout)
					if tt.pauses {
						s.nothingWaits(t)
					}
				})
			})
		}
	}
}

// Nothing is left of a question that the server withdraws before it was passed on.
func TestAQuestionThatIsWithdrawnBeforeItIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, onOneStream, older, nobody)
		first := true
		c := s.call(t.Context(), func(wire.Message) {
			if first { // the second waits behind it
				first = false
				time.Sleep(time.Second)
			}
		})
		c.asks("7")
		c.asks("8")
		c.withdraws("8")
		c.at(2 * time.Second)
		s.answered(t, "7")
		c.ends(t, callTime+time.Second, CodeTimeout) // the first was a second on its way
		s.nothingWaits(t)
	})
}
