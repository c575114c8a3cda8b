package traces_test

import (
	"context"
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// The agent's call that the benches measure: a small one, as the load bench makes it.
const (
	echoPage = `{"tools":[{"name":"echo","description":"Say it again.","inputSchema":{"type":"object",` +
		`"properties":{"message":{"type":"string"}},"required":["message"]}}]}`
	echoPlan      = `{"args":{"message":"hello"},"server":"` + statestest.Server + `","tool":"echo","type":"call_tool"}`
	echoResult    = `{"content":[{"type":"text","text":"hello"}]}`
	otherPolicies = 99 // policies that speak of other tools
)

// nowhere keeps no record.
type nowhere struct{ states.Nowhere }

// chained links steps as a ledger does, and forgets them.
type chained struct{ *traces.Chain }

func (c chained) Append(_ context.Context, s states.Step) error {
	_ = c.Link(s, statestest.At)
	return nil
}

// BenchmarkAgentCall is the machine's part of an agent's call through the gateway: all gates, a hundred policies, a kept
// listing, and a server that answers at once.
func BenchmarkAgentCall(b *testing.B) {
	content := statestest.Content()
	content.Input.Rules, content.Summary, content.Outputs = policy.DefaultRules(), policy.SummaryNever, nil
	content.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: []string{"echo"}}}
	content.Policy = &rules.Content{}
	for i := range otherPolicies {
		content.Policy.Policies = append(content.Policy.Policies, rules.Policy{
			ID: fmt.Sprintf("other-%d", i), Effect: rules.Deny, Match: rules.Match{Server: fmt.Sprintf("erp%d", i), Tool: "export_*"},
		})
	}
	content.Policy.Policies = append(content.Policy.Policies, rules.Policy{ID: "work", Effect: rules.Allow, When: `risk.mode != "danger"`})
	bundle, m := statestest.MustBundle(content, nil), statestest.MustMachine(b)
	kept := statestest.Kept(statestest.Listings(echoPage)[0], "echo")
	request := states.Request{Actor: "bench", At: statestest.At, Kind: states.KindAgent, Text: canonical.Text(echoPlan)}
	call := func(record func(*states.Run) states.Recorder) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run := states.NewRun(statestest.RunID, request, bundle)
				w := statestest.World{Listed: []states.Event{kept}, Returned: &states.ToolReturned{Result: canonical.Text(echoResult)}}
				if o, err := m.Advance(context.Background(), run, w.Door(), record(run)); err != nil || o.Type != states.TypeToolResult {
					b.Fatal(o, err)
				}
			}
		}
	}
	b.Run("unrecorded", call(func(*states.Run) states.Recorder { return nowhere{} }))
	b.Run("chained", call(func(run *states.Run) states.Recorder {
		h := traces.NewHeader(m, run)
		return chained{traces.NewChain(&h)}
	}))
}
