package fsm_test

import (
	"errors"
	"slices"

	"pgfsm/fsm"
)

// subject is what the guards of the test table look at.
type subject struct {
	refuse string // the guard that refuses
	trail  []fsm.State
}

func (s *subject) Trail() []fsm.State { return s.trail }

var errRefused = errors.New("the test says no")

func guard(name, why string) fsm.Guard[*subject] {
	return fsm.Guard[*subject]{Name: name, Why: why, Allow: func(s *subject) error {
		if s.refuse == name {
			return errRefused
		}
		return nil
	}}
}

var beforeDispatch = []fsm.State{
	"received", "screened", "discovered", "planned", "validated", "authorized", "assessed", "pending", "approved",
	"permitted",
}

// realistic is a machine of the size that this package is for.
func realistic() fsm.Table[*subject] {
	t := fsm.Table[*subject]{Name: "one tool call", Places: places(), Rows: forward(), Claims: fsm.Claims{
		Effect: "dispatched", EffectOn: "dispatch",
		Dominators: []fsm.State{
			"screened", "discovered", "planned", "validated", "authorized", "assessed", "permitted",
		},
		Between: []fsm.Between{{From: "pending", To: "permitted", Via: "approved"}},
		Exits: []fsm.Exits{
			{States: beforeDispatch, On: []fsm.Trigger{"block", "fail"}},
			{States: []fsm.State{"assessed"}, On: []fsm.Trigger{"permit", "hold"}},
			{States: []fsm.State{"approved"}, On: []fsm.Trigger{"permit"}},
			{States: []fsm.State{"dispatched"}, On: []fsm.Trigger{"return", "fail"}},
			{States: []fsm.State{"executed", "typed", "summarized"}, On: []fsm.Trigger{"answer"}},
		},
		SoleEntry: []fsm.State{"pending", "approved", "dispatched", "executed", "typed", "summarized", "needs_info"},
	}}
	for _, from := range beforeDispatch {
		t.Rows = append(t.Rows, fsm.Row[*subject]{From: from, On: "block", To: "blocked",
			Guard: guard("block-has-a-verdict", "A block names the gate that said no."), Why: "A gate said no."})
	}
	for _, from := range append(slices.Clone(beforeDispatch), "dispatched") {
		t.Rows = append(t.Rows, fsm.Row[*subject]{From: from, On: "fail", To: "failed",
			Guard: guard("failure-has-an-event", "A failure names the effect that broke."), Why: "An effect broke."})
	}
	return t
}

func places() []fsm.Place {
	return []fsm.Place{
		{State: "received", Established: "the request is captured and digested"},
		{State: "screened", Established: "the input policy has nothing against the request"},
		{State: "discovered", Established: "the live catalog is known; effective allowlist = discovered ∩ allowlisted"},
		{State: "planned", Established: "the planner's output is one strict JSON plan"},
		{State: "validated", Established: "server and tool exist, arguments conform to the tool's inputSchema"},
		{State: "authorized", Established: "the tool is on the effective allowlist and its definition matches its pin"},
		{State: "assessed", Established: "risk mode and score are known"},
		{State: "pending", Established: "parked until a person decides; survives restarts"},
		{State: "approved", Established: "a person agreed to exactly this call; the world was looked at again"},
		{State: "permitted", Established: "a permit exists"},
		{State: "dispatched", Established: "the permit is consumed and that is durable; the call is in flight"},
		{State: "executed", Established: "the raw result is captured"},
		{State: "typed", Established: "the structured content conforms to the registered output type"},
		{State: "summarized", Established: "every item of the summary carries located, verbatim evidence"},
		{State: "answered", Established: "the caller has the result", Terminal: true},
		{State: "needs_info", Established: "the planner asked a question", Terminal: true},
		{State: "blocked", Established: "a gate said no", Terminal: true},
		{State: "failed", Established: "an effect broke", Terminal: true},
	}
}

func forward() []fsm.Row[*subject] {
	row := func(from fsm.State, on fsm.Trigger, to fsm.State, guardName, why string) fsm.Row[*subject] {
		return fsm.Row[*subject]{From: from, On: on, To: to, Why: why,
			Guard: guard(guardName, "The facts before "+string(to)+" agree.")}
	}
	return []fsm.Row[*subject]{
		row("received", "screen", "screened", "input-allowed", "Nothing is looked up for a request that is refused."),
		row("screened", "discover", "discovered", "catalog-known", "A plan is made from what is there now."),
		row("discovered", "plan", "planned", "plan-strict", "Only one strict JSON object is a plan."),
		row("planned", "validate", "validated", "arguments-conform", "The call exists in the live catalog."),
		row("planned", "ask", "needs_info", "question-present", "The planner needs to know more."),
		row("validated", "authorize", "authorized", "tool-allowed", "The operator allowed this tool."),
		row("authorized", "assess", "assessed", "risk-known", "The risk decides who must agree."),
		row("assessed", "permit", "permitted", "policy-allows", "Nobody needs to be asked."),
		row("assessed", "hold", "pending", "policy-holds", "A person has to agree first."),
		row("pending", "approve", "approved", "approval-binds", "A person agreed to exactly this call."),
		row("approved", "permit", "permitted", "policy-allows", "The world is still as it was approved."),
		row("permitted", "dispatch", "dispatched", "permit-armed", "The one call, with exactly these bytes."),
		row("dispatched", "return", "executed", "result-captured", "The call came back."),
		row("executed", "parse", "typed", "output-conforms", "The result has the type it should have."),
		row("executed", "answer", "answered", "note-says-why", "A raw result is answered with the note why it is untyped."),
		row("typed", "summarize", "summarized", "evidence-located", "Every claim stands in the result."),
		row("typed", "answer", "answered", "note-says-why", "A typed result is answered without a summary."),
		row("summarized", "answer", "answered", "note-says-why", "The answer is complete."),
	}
}

// byApproval is a run that goes the longest way.
func byApproval() fsm.Marks {
	return fsm.Marks{
		{From: "received", On: "screen", To: "screened"}, {From: "screened", On: "discover", To: "discovered"},
		{From: "discovered", On: "plan", To: "planned"}, {From: "planned", On: "validate", To: "validated"},
		{From: "validated", On: "authorize", To: "authorized"}, {From: "authorized", On: "assess", To: "assessed"},
		{From: "assessed", On: "hold", To: "pending"}, {From: "pending", On: "approve", To: "approved"},
		{From: "approved", On: "permit", To: "permitted"}, {From: "permitted", On: "dispatch", To: "dispatched"},
		{From: "dispatched", On: "return", To: "executed"}, {From: "executed", On: "parse", To: "typed"},
		{From: "typed", On: "answer", To: "answered"},
	}
}

// byBlock is a run that a gate stopped.
func byBlock() fsm.Marks {
	return append(byApproval()[:4:4], fsm.Mark{From: "validated", On: "block", To: "blocked"})
}
