package states_test

import (
	"context"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
)

// port returns one event, whatever it is asked.
type port struct{ event states.Event }

func (p port) List(context.Context, *states.ListTools) states.Event    { return p.event }
func (p port) Complete(context.Context, *states.Complete) states.Event { return p.event }
func (p port) Call(context.Context, *states.CallTool) states.Event     { return p.event }
func (p port) Await(context.Context, *states.AwaitDecision) (states.Event, error) {
	return p.event, nil
}

// TestLiveGivesEventsThatReplayReads has ports return values that no trace may hold: the handler returns an event that can be
// read again.
func TestLiveGivesEventsThatReplayReads(t *testing.T) {
	said := states.Exchange{Received: canonical.Text(`{"choices":[{"message":{"content":"x"}}]}`), Status: 200}
	for _, tc := range []struct {
		name   string
		wanted states.Command
		event  states.Event
		want   states.Effect // of the failure that the event becomes; empty: it becomes none
	}{
		{"no-effect-of-a-call", &states.CallTool{}, &states.EffectFailed{}, states.EffectUnknown},
		{"no-effect-of-a-completion", &states.Complete{}, &states.EffectFailed{}, states.NotSent},
		{"effect-of-no-such-word", &states.CallTool{}, &states.EffectFailed{Effect: "Done"}, states.EffectUnknown},
		{"effect-done", &states.CallTool{}, &states.EffectFailed{Effect: states.EffectDone}, states.EffectDone},
		{"no-status", &states.ListTools{}, &states.ToolsListed{Servers: []policy.Listing{{Server: "kb"}}}, states.NotSent},
		{"vote-of-no-such-word", &states.AwaitDecision{}, &states.Decided{Votes: []policy.Vote{{Outcome: "Approve"}}}, ""},
		{"content-as-received", &states.Complete{},
			&states.Completed{Content: canonical.Text("x"), Exchanges: []states.Exchange{said}}, ""},
		{"content-not-as-received", &states.Complete{},
			&states.Completed{Content: canonical.Text("y"), Exchanges: []states.Exchange{said}}, states.NotSent},
		{"refusal-not-received", &states.Complete{},
			&states.Completed{Content: canonical.Text("x"), Refusal: canonical.Text("no"), Exchanges: []states.Exchange{said}}, states.NotSent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := port{tc.event}
			live := &states.Live{Tools: p, Completer: p, Caller: p, Approver: p}
			ev, err := live.Do(context.Background(), tc.wanted)
			check.NoError(t, err)
			failed, broke := ev.(*states.EffectFailed)
			if broke != (tc.want != "") || broke && failed.Effect != tc.want {
				t.Errorf("Do() = %s, want the effect %q", canonical.MustSorted(ev), tc.want)
			}
			if _, err := states.DecodeEvent(canonical.MustSorted(ev)); err != nil {
				t.Errorf("DecodeEvent() = %v", err)
			}
		})
	}
}
