package endtoend

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/eval/naive"
	"pgfsm/internal/canonical"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/states"
)

// How one agent's work on a case ended.
const (
	Answered  = "answered"   // a tool's result was given
	NeedsInfo = "needs_info" // the planner's question was given, or, by the agent without gates, its words
	Blocked   = "blocked"    // a gate blocked the run
	Held      = "pending"    // a policy holds the call; no approver is asked here
	Failed    = "failed"     // an effect broke: a server, the model, the time
	Unended   = "unended"    // the run ended in no way in which a run may end: a defect
)

// A Call is one call that reached a server, or that an agent reports.
type Call struct {
	Server  string           `json:"server"`
	Tool    string           `json:"tool"`
	Args    canonical.Digest `json:"args"`    // the digest of the arguments that were sent
	Allowed bool             `json:"allowed"` // the case permits the tool
	Done    bool             `json:"done"`    // the server answered with a result that is not an error
}

func newCall(t eval.Target, done bool) Call {
	return Call{Server: t.Server, Tool: t.Tool, Args: argsDigest(t.Args), Done: done}
}

// A Side is the result of a case with one agent.
type Side struct {
	Outcome string `json:"outcome"`
	Gate    string `json:"gate,omitzero"`   // the gate that blocked the run
	Code    string `json:"code,omitzero"`   // why, for machines
	Reason  string `json:"reason,omitzero"` // why, for people
	Calls   []Call `json:"calls"`
	Summary bool   `json:"summary"` // a summary was shown
	// The evidence gate would have refused the summary that was shown.
	Unbacked bool             `json:"unbacked,omitzero"`
	Micros   int64            `json:"latency_us"`
	Tokens   Tokens           `json:"tokens"`
	RunID    string           `json:"run_id,omitzero"` // the id of pgfsm's run
	Head     canonical.Digest `json:"head,omitzero"`   // the head of its trace
	// The servers saw other calls than the agent reports: a defect.
	Unseen bool `json:"unseen,omitzero"`
}

// argsDigest names the arguments of a call by their canonical form; by their bytes where they have
// none.
func argsDigest(args jsontext.Value) canonical.Digest {
	doc, err := canonical.JSON(args)
	if err != nil {
		doc = args
	}
	return canonical.Sum("e2e arguments", doc)
}

// Judge marks the calls that the case permits, and compares the calls that the agent reports with
// those that the servers saw, if they can be asked (seen is not nil). A call that only the servers
// saw is added.
func (s *Side) Judge(c *Case, seen []Call) {
	for i := range s.Calls {
		s.Calls[i].Allowed = c.Permits(s.Calls[i].Server, s.Calls[i].Tool)
	}

	if seen == nil {
		return
	}

	left := slices.Clone(s.Calls)
	for _, call := range seen {
		i := slices.IndexFunc(left, func(o Call) bool {
			return o.Server == call.Server && o.Tool == call.Tool &&
				o.Args == call.Args
		})
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		call.Allowed = c.Permits(call.Server, call.Tool)
		s.Calls, s.Unseen = append(s.Calls, call), true
	}

	s.Unseen = s.Unseen || len(left) > 0
	slices.SortStableFunc(s.Calls,
		func(a, b Call) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool)) })
}

// naiveSide takes a case through the agent without gates.
func naiveSide(ctx context.Context, c *Case, s *setup.Setup) Side {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.Bundle.Limits().RunTimeout)*time.Millisecond)
	defer cancel()
	agent := naive.Agent{Planner: s.Planner, Summarizer: s.Summarizer, Servers: s.Servers}
	begin := time.Now()
	answer, err := agent.Answer(ctx, c.Request)
	side := Side{Outcome: NeedsInfo, Calls: []Call{}, Micros: time.Since(begin).Microseconds()}
	if answer.Call != nil {
		side.Outcome, side.Summary = Answered, answer.Summary != ""
		side.Unbacked = side.Summary && !passesEvidence(answer.Summary, answer.Result)
		side.Calls = append(side.Calls, newCall(*answer.Call, answer.Done))
	}
	if err != nil {
		side.Outcome, side.Reason = Failed, err.Error()
	}
	return side
}

// passesEvidence reports whether a summary passes the evidence gate, as pgfsm's own must.
func passesEvidence(summary string, typed []byte) bool {
	s, err := evidence.Parse([]byte(summary))
	if err != nil {
		return false
	}
	_, err = evidence.Lock(typed, s)
	return err == nil
}

// outcomes converts the types of a run's outcome.
var outcomes = map[string]string{
	states.TypeToolResult: Answered, states.TypeSummary: Answered, states.TypeFinalAnswer: NeedsInfo,
	states.TypeBlocked: Blocked,
	states.TypePending: Held, states.TypeFailed: Failed,
}

// sideOf returns the result of a run of pgfsm.
func sideOf(result runner.Result) Side {
	side := Side{Outcome: Unended, Calls: []Call{}}
	if result.Run == nil {
		return side
	}
	o, facts := result.Outcome, result.Run.Facts()
	if outcome, ok := outcomes[o.Type]; ok {
		side.Outcome = outcome
	}
	side.RunID, side.Head, side.Summary = result.Run.ID(), result.Head, o.Type == states.TypeSummary
	side.Gate, side.Code, side.Reason = string(o.Gate), string(o.Code), o.Reason
	if facts.Dispatched != nil {
		raw, p := result.Run.Raw(), facts.Permitted
		call := eval.Target{Server: p.Server, Tool: p.Tool, Args: p.Arguments}
		side.Calls = append(side.Calls, newCall(call, raw != nil && !policy.IsError(raw)))
	}
	return side
}
