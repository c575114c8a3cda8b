// Package statestest has a small world for tests of the machine: a bundle, a catalog, scripted ports, and scenarios that together cover every row of the
// table.
package statestest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/screen"
	"pgfsm/states"
)

// Names in the world.
const (
	Server = "mcp-policy-kb"
	Tool   = "fetch_policy_entry"
	Delete = "delete_policy_entry"
	RunID  = "01890a5d-ac96-774b-bcce-b302099a8057"
	At     = "2026-11-21T09:00:00.000Z"
	Actor  = "local:alice"
)

// Schemas of the world's tools.
const (
	InputSchema = `{"type":"object","properties":{` +
		`"policy_id":{"type":"string","pattern":"^policy-[0-9]{3}$"},` +
		`"lang":{"type":"string","enum":["en","de"]},` +
		`"version":{"type":"integer","minimum":1,"maximum":9},` +
		`"sections":{"type":"array","items":{"type":"string"},"maxItems":8},` +
		`"as_of":{"type":"string","maxLength":10},` +
		`"history":{"type":"boolean"},` +
		`"weight":{"type":"number","minimum":0},` +
		`"filter":{"type":"object","properties":{"owner":{"type":"string"}}}` +
		`},"required":["policy_id"]}`
	OutputSchema = `{"type":"object","properties":{"status":{"type":"string"},"title":{"type":"string"},` +
		`"body":{"type":"string"}},"required":["status"],"additionalProperties":false}`
)

// Documents of the world.
const (
	GoodPlan = `{"type":"call_tool","server":"mcp-policy-kb","tool":"fetch_policy_entry","args":{"policy_id":"policy-002"}}`
	// FullPlan fills all eight arguments.
	FullPlan = `{"type":"call_tool","server":"mcp-policy-kb","tool":"fetch_policy_entry","args":{"policy_id":"policy-002",` +
		`"lang":"en","version":3,"sections":["scope","retention"],"as_of":"2026-11-21","history":false,"weight":0.5,` +
		`"filter":{"owner":"Records Office"}}}`
	GoodResult = `{"content":[{"type":"text","text":"Log Retention"}],"structuredContent":{"status":"OK",` +
		`"title":"Log Retention","body":"Security logs are kept for 400 days. Access logs are kept for 90 days."}}`
	GoodSummary = `{"items":[{"claim":"Security logs are kept for 400 days.","evidence":"Security logs are kept for 400 days."}]}`
	Question    = "Summarize policy policy-002"
	// FullQuestion is a question for FullPlan.
	FullQuestion = "Show version 3 of policy-002, in English, please"
	Page         = `{"tools":[{"name":"fetch_policy_entry","description":"Fetch one policy by id.","inputSchema":` + InputSchema +
		`,"outputSchema":` + OutputSchema + `,"annotations":{"readOnlyHint":true}},` +
		`{"name":"delete_policy_entry","inputSchema":{"type":"object","properties":{"policy_id":{"type":"string"}}}}]}`
)

// Content is a bundle that allows the one reading tool.
func Content() policy.Content {
	return policy.Content{
		Format:    policy.ContentFormat,
		Env:       "test",
		Servers:   []policy.Server{{Name: Server, Type: "http", URL: "http://127.0.0.1:5103/mcp", Timeout: 1000}},
		Allowlist: []policy.Allowance{{Server: Server, Tools: []string{Tool}}},
		Input: policy.Input{MaxBytes: policy.DefaultInputBytes, Rules: []policy.InputRule{{
			Rule: screen.Rule{ID: "malware", Pattern: `\bransomware\b`, Reason: "No malware."}, On: []string{policy.KindAsk},
		}}},
		Planner: policy.Planner{Mode: policy.PlannerRouter},
		Outputs: []policy.ToolSchema{{Server: Server, Tool: Tool, Schema: jsontext.Value(OutputSchema)}},
		Summary: policy.SummaryAsked,
		Limits:  policy.DefaultLimits(),
	}
}

// Listings is the answer of a server that is up.
func Listings(pages ...string) []policy.Listing {
	l := policy.Listing{Server: Server, Status: policy.ServerUp, Protocol: "2025-11-25", Name: "kb", Version: "1"}
	for _, p := range pages {
		l.Pages = append(l.Pages, canonical.Text(p))
	}
	return []policy.Listing{l}
}

// World answers commands with scripted events. It implements every port of [states.Live], and counts the calls.
type World struct {
	Listed   []states.Event // one for each time that tools are listed
	Plan     states.Event
	Summary  states.Event
	Returned states.Event
	Decided  states.Event // nil parks the run
	History  states.Event // nil: the history is unknown
	Active   *policy.Bundle

	Calls []states.CallTool // every call that was made, in order
	lists int
}

// NewWorld is a world in which all goes well.
func NewWorld() *World {
	return &World{
		Listed:   []states.Event{&states.ToolsListed{Servers: Listings(Page)}, &states.ToolsListed{Servers: Listings(Page)}},
		Plan:     &states.Completed{Content: canonical.Text(GoodPlan)},
		Summary:  &states.Completed{Content: canonical.Text(GoodSummary)},
		Returned: &states.ToolReturned{Result: canonical.Text(GoodResult)},
	}
}

// Effects is the world behind the live handler.
func (w *World) Effects() states.EffectHandler {
	return &states.Live{Tools: w, Completer: w, Caller: w, Approver: w, History: w, Active: w.Active}
}

// List answers with the next listing.
func (w *World) List(context.Context, *states.ListTools) states.Event {
	w.lists++
	if w.lists > len(w.Listed) {
		return nil
	}
	return w.Listed[w.lists-1]
}

// Complete answers with the plan or the summary.
func (w *World) Complete(_ context.Context, c *states.Complete) states.Event {
	if c.Purpose == states.PurposeSummary {
		return w.Summary
	}
	return w.Plan
}

// ReadHistory answers with the scripted history.
func (w *World) ReadHistory(context.Context, *states.ReadHistory) states.Event { return w.History }

// Call notes the call and answers with the result.
func (w *World) Call(_ context.Context, c *states.CallTool) states.Event {
	w.Calls = append(w.Calls, *c)
	return w.Returned
}

// Await answers with the decision, for any binding.
func (w *World) Await(_ context.Context, c *states.AwaitDecision) (states.Event, error) {
	d, ok := w.Decided.(*states.Decided)
	if !ok {
		return w.Decided, parkedUnless(w.Decided)
	}
	answered := *d
	answered.Votes = slices.Clone(d.Votes)
	if answered.Binding == "" {
		answered.Binding = c.Binding
	}
	for i := range answered.Votes {
		if answered.Votes[i].Binding == "" {
			answered.Votes[i].Binding = answered.Binding
		}
	}
	return &answered, nil
}

// Votes is a decision for any binding, at the time of its last vote.
func Votes(votes ...policy.Vote) *states.Decided {
	return &states.Decided{At: votes[len(votes)-1].At, Votes: votes}
}

// Vote is one person's vote.
func Vote(outcome, by, at string) policy.Vote {
	return policy.Vote{At: at, By: by, Outcome: outcome, Reason: "as agreed"}
}

func parkedUnless(ev states.Event) error {
	if ev == nil {
		return states.ErrParked
	}
	return nil
}

// HoldAll is a policy that holds every call until Until, and denies calls from DenyFrom on.
type HoldAll struct{ Until, DenyFrom string }

// Decide holds or denies.
func (h HoldAll) Decide(q policy.Question) policy.Assessment {
	v := policy.Verdict{Gate: policy.GatePolicy, Outcome: policy.Hold, Code: policy.CodeApprovalRequired, Reason: "A person decides."}
	if h.DenyFrom != "" && q.Now >= h.DenyFrom {
		v = policy.Verdict{Gate: policy.GatePolicy, Outcome: policy.Block, Code: policy.CodePolicyDenied, Reason: "Denied by now."}
	}
	return policy.Assessment{Expires: h.Until, Mode: "review", Score: 50, Verdict: v}
}

// InterruptAt interrupts the run at its nth step, counted from 0.
type InterruptAt struct {
	states.EffectHandler
	N    int
	Code policy.Code
	seen int
}

// Do interrupts or passes on.
func (d *InterruptAt) Do(ctx context.Context, c states.Command) (states.Event, error) {
	d.seen++
	if d.seen == d.N+1 {
		return states.Interruption(d.Code, "Interrupted by the test."), nil
	}
	return d.EffectHandler.Do(ctx, c)
}

// Memory is a recorder that keeps the steps.
type Memory struct{ Steps []states.Step }

// Append keeps the step.
func (m *Memory) Append(_ context.Context, s states.Step) error {
	s.Facts, s.Command, s.Event = s.Facts.Clone(), s.Command.Clone(), s.Event.Clone()
	m.Steps = append(m.Steps, s)
	return nil
}

// Marks are the transitions of the steps.
func (m *Memory) Marks() fsm.Marks {
	var marks fsm.Marks
	for _, s := range m.Steps {
		marks = append(marks, fsm.Mark{From: s.From, On: s.On, To: s.To})
	}
	return marks
}

// bundles holds the bundles that MustBundle compiled, by the content in canonical form. Bundles do not change, so that tests share them.
var bundles sync.Map

// MustBundle compiles content, once a process, or panics: the content is this package's own.
func MustBundle(c policy.Content, d policy.Decider) *policy.Bundle {
	text := string(canonical.MustMarshal(&c))
	cached, ok := bundles.Load(text)
	if !ok {
		compiled, err := policy.Compile(c)
		if err != nil {
			panic(fmt.Sprintf("statestest: %v", err))
		}
		cached, _ = bundles.LoadOrStore(text, compiled)
	}
	b := cached.(*policy.Bundle)
	if d != nil {
		b = b.WithDecider(d)
	}
	return b
}

// MustMachine compiles the machine or ends the test.
func MustMachine(tb testing.TB) *states.Machine {
	tb.Helper()
	m, err := states.NewMachine()
	if err != nil {
		tb.Fatalf("NewMachine() = %v", err)
	}
	return m
}
