package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// A client that is asked in results gets in one result what a server asks within ask.CollectTime of its first question.
func TestQuestionsThatAServerAsksTogether(t *testing.T) {
	for _, tt := range []struct {
		name   string
		at     []time.Duration // of the questions, since the last round was answered
		rounds []string        // what the client is asked in each
	}{
		{"one", []time.Duration{0}, []string{"q1"}},
		{"at-once", []time.Duration{0, 0, 0}, []string{"q1,q2,q3"}},
		{"within-the-time", []time.Duration{time.Second, time.Second + ask.CollectTime - 1}, []string{"q1,q2"}},
		{"after-the-time", []time.Duration{0, ask.CollectTime + 1}, []string{"q1", "q2"}},
		{"the-time-begins-with-the-first", []time.Duration{0, ask.CollectTime / 2, ask.CollectTime + 1}, []string{"q1,q2", "q3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0, nil)
				a.judge.decide = func(ctx context.Context, call *Ask) Answer {
					_, _ = call.Link(ctx)
					begun := time.Now()
					var answers []chan string
					for _, at := range tt.at {
						time.Sleep(at - time.Since(begun))
						id, answer := a.next()
						answers = append(answers, answer)
						call.Relay(elicits(id))
					}
					for _, answer := range answers {
						<-answer
					}
					return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
				}
				begun := time.Now()
				got := a.ann.ask(byTool, first1)
				if took := time.Since(begun); took != tt.at[0]+ask.CollectTime {
					t.Errorf("the client was asked after %s, want %s", took, tt.at[0]+ask.CollectTime)
				}
				var rounds []string
				for strings.Contains(got, "input_required") {
					state, asks := names(t, got)
					rounds = append(rounds, strings.Join(asks, ","))
					var b wire.Object
					for _, name := range asks {
						b.Add(name, []byte(`{"action":"accept"}`))
					}
					got = a.ann.again(byTool, state, string(b.Done()))
				}
				if d := cmp.Diff(tt.rounds, rounds); d != "" || !strings.Contains(got, `"content":[]`) {
					t.Errorf("the rounds (-want +got):\n%s\nin the end: %s", d, got)
				}
			})
		})
	}
}

// A server that goes on within the time is not waited for, and a question that it withdraws is never asked.
func TestQuestionsThatAreOverWithinTheTime(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a := newAsker(t, 0, nil)
			a.judge.decide = func(ctx context.Context, call *Ask) Answer {
				_, _ = call.Link(ctx)
				call.Relay(elicits("10"))
				time.Sleep(ask.CollectTime / 2)
				if !answers {
					call.Relay(wire.Message{Method: methodCancelled, Params: jsontext.Value(`{"requestId":10}`)})
					time.Sleep(ask.CollectTime)
				}
				return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
			}
			begun := time.Now()
			got := a.ann.ask(byTool, first1)
			if took := time.Since(begun); !strings.Contains(got, `"content":[]`) || answers && took != ask.CollectTime/2 {
				t.Errorf("after %s: %s", took, got)
			}
		})
	}
}
