package attack

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/states"
)

// answer is every tool's answer. Only the call itself is measured.
const answer = `{"content":[{"type":"text","text":"done"}]}`

// listing is the answers of the bundle's servers to tools/list. Many runs share it.
func listing(tools *eval.Tools, servers []policy.Server, opened bool) (*states.ToolsListed, error) {
	listed := &states.ToolsListed{Servers: []policy.Listing{}}
	for _, s := range servers {
		l := policy.Listing{Server: s.Name, Status: policy.ServerUp, Name: s.Name, Pages: []canonical.Text{}}
		sent, ok := tools.ToolsOf(s.Name)
		if !ok {
			l.Status, l.Code, l.Reason = policy.ServerDown, "server_unreachable", "The tools file names no such server."
			listed.Servers = append(listed.Servers, l)
			continue
		}
		page := []byte(`{"tools":[`)
		for i, raw := range sent {
			if i > 0 {
				page = append(page, ',')
			}
			if opened {
				var err error
				if raw, err = open(raw); err != nil {
					return nil, err
				}
			}
			page = append(page, raw...)
		}
		l.Pages = append(l.Pages, append(page, "]}"...))
		listed.Servers = append(listed.Servers, l)
	}
	return states.Shared(listed), nil
}

// open keeps a tool's name, and gives it a schema that accepts anything.
func open(raw jsontext.Value) (jsontext.Value, error) {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, err
	}
	return canonical.Marshal(struct {
		Name        string         `json:"name"`
		InputSchema jsontext.Value `json:"inputSchema"`
	}{named.Name, jsontext.Value(openSchema)})
}

// ports are the world of one run. They record the calls that reach the server.
type ports struct {
	run    *states.Run
	listed *states.ToolsListed
	output []byte // the planner's output
	// changes: the server announces other tools as soon as there is a plan
	changes  bool
	approver approver
	before   []eval.Target // the calls that were made for the same task, oldest first

	seen []eval.Target // the calls that reached the server
	held bool          // the approver was asked
}

// List answers with the tools file.
func (p *ports) List(context.Context, *states.ListTools) states.Event { return p.listed }

// Complete answers with the plan.
func (p *ports) Complete(_ context.Context, wanted *states.Complete) states.Event {
	if wanted.Purpose != states.PurposePlan {
		return nil
	}
	return &states.Completed{Content: p.output}
}

// Call records what reached the server.
func (p *ports) Call(_ context.Context, c *states.CallTool) states.Event {
	p.seen = append(p.seen, eval.Target{Server: c.Server, Tool: c.Tool, Args: slices.Clone(c.Bytes)})
	return &states.ToolReturned{Result: canonical.Text(answer)}
}

// Await asks the approver.
func (p *ports) Await(_ context.Context, wanted *states.AwaitDecision) (states.Event, error) {
	p.held = true
	return p.approver(p.run, wanted.Binding)
}

// Changed reports a change of the tools as soon as there is a plan.
func (p *ports) Changed() (string, bool) {
	plan := p.run.Plan()
	if !p.changes || plan == nil {
		return "", false
	}
	return plan.Server, true
}

// ReadHistory counts the calls that were made for the same task: they are the only calls, and within every window.
func (p *ports) ReadHistory(_ context.Context, wanted *states.ReadHistory) states.Event {
	read := &states.HistoryRead{Calls: taskCalls(p.before), Values: make([]policy.HistoryAnswer, len(wanted.Queries))}
	plan := p.run.Plan()
	for i, q := range wanted.Queries {
		read.Values[i] = historyOf(q, plan, p.before)
	}
	return read
}

// taskCalls counts calls by tool, in the order in which tools were first called.
func taskCalls(before []eval.Target) []policy.TaskCalls {
	counts := []policy.TaskCalls{}
	for _, t := range before {
		at := slices.IndexFunc(counts, func(c policy.TaskCalls) bool { return c.Server == t.Server && c.Tool == t.Tool })
		if at < 0 {
			counts = append(counts, policy.TaskCalls{Server: t.Server, Tool: t.Tool})
			at = len(counts) - 1
		}
		counts[at].Calls++
	}
	return counts
}

func historyOf(q policy.HistoryQuery, plan *policy.Plan, before []eval.Target) policy.HistoryAnswer {
	n, sum := 0, new(big.Rat)
	for _, t := range before {
		if q.Of != condition.QueryCountAll && (t.Server != plan.Server || t.Tool != plan.Tool) {
			continue
		}
		n++
		if q.Of != condition.QuerySum {
			continue
		}
		x, ok := numberAt(t.Args, q.Path)
		if !ok {
			return q.Fail("a call before has no number there")
		}
		sum.Add(sum, x)
	}
	if q.Of != condition.QuerySum {
		return q.Answer(strconv.Itoa(n))
	}
	digits, _ := sum.FloatPrec() // exact: each summand is a decimal
	return q.Answer(sum.FloatString(digits))
}

// maxSummand bounds the bytes of a number that is summed: a double written out in full has fewer.
const maxSummand = 400

// numberAt returns the number at a place of canonical arguments, written with dots between names.
func numberAt(args jsontext.Value, path string) (*big.Rat, bool) {
	value := args
	for name := range strings.SplitSeq(path, ".") {
		var next jsontext.Value
		for member, v := range canonical.Members(value) {
			if member == name {
				next = v
			}
		}
		if value = next; value == nil {
			return nil, false
		}
	}
	if value.Kind() != '0' || len(value) > maxSummand || strings.ContainsAny(string(value), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(value))
}
