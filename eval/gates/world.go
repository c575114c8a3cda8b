package gates

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// The small world of the plans: two servers, each with a tool that the operator allows and one that the operator does not allow.
// The second server also lists a tool with the name of the first server's tool, which is not allowed there.
const (
	serverKB   = "kb"
	serverDesk = "desk"
	toolFetch  = "fetch_entry"
	toolDelete = "delete_entry"
	toolSearch = "search_tickets"
	toolClose  = "close_ticket"
)

// The answers of the servers to tools/list.
var (
	pageKB   = corpus.Document("kb")
	pageDesk = corpus.Document("desk")

	fetchTool, fetchSchema = firstTool(pageKB)
)

// firstTool returns the first tool of a page, and its schema, byte for byte.
func firstTool(page string) (tool, schema string) {
	var listed struct {
		Tools []jsontext.Value `json:"tools"`
	}
	var first struct {
		InputSchema jsontext.Value `json:"inputSchema"`
	}
	err := json.Unmarshal([]byte(page), &listed)
	if err == nil {
		err = json.Unmarshal(listed.Tools[0], &first)
	}
	if err != nil {
		panic(err) // the page is embedded
	}
	return string(listed.Tools[0]), string(first.InputSchema)
}

// The request of every run. It is fixed, because the result must be the same every time.
const (
	question = "Find what entry-002 says about laptops, in English, please"
	actor    = "local:alice"
	asked    = "2026-11-21T09:00:00Z"
	runID    = "01890a5d-ac96-774b-bcce-b302099a8057"
)

// content is the operator's configuration.
func content() policy.Content {
	return policy.Content{
		Format: policy.ContentFormat,
		Env:    "eval",
		Servers: []policy.Server{
			{Name: serverKB, Type: "http", URL: "http://127.0.0.1:1/mcp", Timeout: policy.DefaultTimeout},
			{Name: serverDesk, Type: "http", URL: "http://127.0.0.1:2/mcp", Timeout: policy.DefaultTimeout},
		},
		Allowlist: []policy.Allowance{
			{Server: serverKB, Tools: []string{toolFetch}}, {Server: serverDesk, Tools: []string{toolSearch}},
		},
		Input:   policy.Input{MaxBytes: policy.DefaultInputBytes, Rules: policy.DefaultRules()},
		Planner: policy.Planner{Mode: policy.PlannerAuto},
		Summary: policy.SummaryNever,
		Limits:  policy.DefaultLimits(),
	}
}

// listings are answers to tools/list, one page each.
func listings(servers []string, pages ...string) []policy.Listing {
	all := make([]policy.Listing, 0, len(pages))
	for i, page := range pages {
		all = append(all, policy.Listing{
			Server: servers[i], Status: policy.ServerUp, Protocol: "2025-11-25", Name: servers[i], Version: "1",
			Pages: []canonical.Text{canonical.Text(page)},
		})
	}
	return all
}

// listed is the answers of the world's servers to tools/list.
func listed(kb, desk string) *states.ToolsListed {
	return states.Shared(&states.ToolsListed{Servers: listings([]string{serverKB, serverDesk}, kb, desk)})
}

// A world answers commands with prepared events, and records every call. It implements the ports of [states.Live].
type world struct {
	listed  []*states.ToolsListed // one for each listing; the last one is repeated
	plan    []byte
	result  []byte
	decided func(binding canonical.Digest) *states.Decided // nil: there is no decision
	active  *policy.Bundle
	calls   []states.CallTool

	lists int
}

// handler connects the world to the machine.
func (w *world) handler() states.EffectHandler {
	return &states.Live{Tools: w, Completer: w, Caller: w, Approver: w, Active: w.active}
}

// List answers with the next listing.
func (w *world) List(context.Context, *states.ListTools) states.Event {
	w.lists++
	return w.listed[min(w.lists, len(w.listed))-1]
}

// Complete answers with the plan. No run of the world asks for a summary.
func (w *world) Complete(context.Context, *states.Complete) states.Event {
	return &states.Completed{Content: w.plan}
}

// Call records the call and answers with the result.
func (w *world) Call(_ context.Context, c *states.CallTool) states.Event {
	made := *c
	made.Bytes = slices.Clone(c.Bytes)
	w.calls = append(w.calls, made)
	return &states.ToolReturned{Result: w.result}
}

// Await answers with the decision.
func (w *world) Await(_ context.Context, c *states.AwaitDecision) (states.Event, error) {
	if w.decided == nil {
		return nil, states.ErrParked
	}
	return w.decided(c.Binding), nil
}

// plainResult is the answer of a tool if the answer does not matter.
var plainResult = []byte(`{"content":[]}`)

// questionRun is a run of the standard request.
func questionRun(b *policy.Bundle) *states.Run {
	return states.NewRun(runID, states.Request{Actor: actor, At: asked, Kind: states.KindAsk, Text: canonical.Text(question)}, b)
}
