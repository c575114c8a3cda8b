package states

import "pgfsm/fsm"

// The states. Each says what has been established; see [Table].
const (
	Received   fsm.State = "received"
	Screened   fsm.State = "screened"
	Discovered fsm.State = "discovered"
	Planned    fsm.State = "planned"
	Validated  fsm.State = "validated"
	Authorized fsm.State = "authorized"
	Assessed   fsm.State = "assessed"
	Pending    fsm.State = "pending"
	Approved   fsm.State = "approved"
	Permitted  fsm.State = "permitted"
	Dispatched fsm.State = "dispatched"
	Executed   fsm.State = "executed"
	Typed      fsm.State = "typed"
	Summarized fsm.State = "summarized"
	Answered   fsm.State = "answered"
	NeedsInfo  fsm.State = "needs_info"
	Blocked    fsm.State = "blocked"
	Failed     fsm.State = "failed"
)

// The triggers. Each always establishes the same state.
const (
	Screen    fsm.Trigger = "screen"
	Discover  fsm.Trigger = "discover"
	Plan      fsm.Trigger = "plan"
	Validate  fsm.Trigger = "validate"
	Ask       fsm.Trigger = "ask"
	Authorize fsm.Trigger = "authorize"
	Assess    fsm.Trigger = "assess"
	Hold      fsm.Trigger = "hold"
	Approve   fsm.Trigger = "approve"
	Permit    fsm.Trigger = "permit"
	Dispatch  fsm.Trigger = "dispatch"
	Return    fsm.Trigger = "return"
	Parse     fsm.Trigger = "parse"
	Summarize fsm.Trigger = "summarize"
	Answer    fsm.Trigger = "answer"
	Block     fsm.Trigger = "block"
	Fail      fsm.Trigger = "fail"
)

// Table is the machine: the specification, read from top to bottom. Everything else about the machine (the proofs, the
// report, the pictures, the transitions that a run may take) is made from these rows and from nothing else.
func Table() fsm.Table[*Run] {
	return fsm.Table[*Run]{
		Name: "pgfsm",
		Places: []fsm.Place{
			{State: Received, Established: "the request is captured and digested"},
			{State: Screened, Established: "the input policy has nothing against the request (INV-0)"},
			{State: Discovered, Established: "the live catalog and the effective allowlist are known"},
			{State: Planned, Established: "the planner's output is one strict JSON plan (INV-1)"},
			{State: Validated, Established: "server and tool exist, the operator allows the tool, the arguments conform to its inputSchema (INV-2)"},
			{State: Authorized, Established: "the tool is on the effective allowlist, by the definition that was judged, and every grant covers the call (INV-3)"},
			{State: Assessed, Established: "risk and policy have spoken"},
			{State: Pending, Established: "the run is parked until a person decides"},
			{State: Approved, Established: "a person agreed to exactly this call"},
			{State: Permitted, Established: "a permit for exactly one call with exactly these bytes exists"},
			{State: Dispatched, Established: "the permit is consumed, durably; the call is in flight"},
			{State: Executed, Established: "the raw result is captured (INV-6)"},
			{State: Typed, Established: "the structured content is of the registered output type (INV-4)"},
			{State: Summarized, Established: "every item of the summary carries located, verbatim evidence (INV-5)"},
			{State: Answered, Established: "the result is given to the caller", Terminal: true},
			{State: NeedsInfo, Established: "the planner's question is given to the caller", Terminal: true},
			{State: Blocked, Established: "a gate said no, or the run was cancelled; nothing was called", Terminal: true},
			{State: Failed, Established: "an effect broke, or the run was interrupted", Terminal: true},
		},
		Rows: []fsm.Row[*Run]{
			{From: Received, On: Screen, Guard: screenAllows, To: Screened, Why: "no input rule matched"},
			{From: Received, On: Block, Guard: gateBlocks, To: Blocked, Why: "an input rule names what the request asks for"},
			{From: Received, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before it was screened"},

			{From: Screened, On: Discover, Guard: catalogKnown, To: Discovered, Why: "at least one server listed its tools"},
			{From: Screened, On: Block, Guard: gateBlocks, To: Blocked, Why: "the run was cancelled before discovery ended"},
			{From: Screened, On: Fail, Guard: effectBroke, To: Failed, Why: "no server answered"},

			{From: Discovered, On: Plan, Guard: planStrict, To: Planned, Why: "the planner's output is one strict JSON plan"},
			{From: Discovered, On: Block, Guard: gateBlocks, To: Blocked, Why: "the planner's output is not one strict JSON plan"},
			{From: Discovered, On: Fail, Guard: effectBroke, To: Failed, Why: "the planner gave no output"},

			{From: Planned, On: Validate, Guard: argumentsConform, To: Validated, Why: "the tool exists, the allowlist, pins and grants name it, and the arguments conform to its schema"},
			{From: Planned, On: Ask, Guard: plannerAsks, To: NeedsInfo, Why: "the planner asks for what is missing"},
			{From: Planned, On: Block, Guard: gateBlocks, To: Blocked, Why: "no such tool; or the allowlist, a pin or a grant does not name it; or its schema refuses the arguments"},
			{From: Planned, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the plan was validated"},

			{From: Validated, On: Authorize, Guard: toolListed, To: Authorized, Why: "the allowlist names the tool as it was judged, and every grant covers the call"},
			{From: Validated, On: Block, Guard: gateBlocks, To: Blocked, Why: "a grant does not cover the call, or the run was cancelled before the call was authorized"},
			{From: Validated, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the call was authorized"},

			{From: Authorized, On: Assess, Guard: riskKnown, To: Assessed, Why: "risk and policy looked at exactly this call"},
			{From: Authorized, On: Block, Guard: gateBlocks, To: Blocked, Why: "a policy denies the call, or none allows it"},
			{From: Authorized, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the call was assessed"},

			{From: Assessed, On: Permit, Guard: permitMinted, To: Permitted, Why: "the policy allows the call; a permit for it is minted"},
			{From: Assessed, On: Hold, Guard: policyHolds, To: Pending, Why: "a policy asks for a person"},
			{From: Assessed, On: Block, Guard: gateBlocks, To: Blocked, Why: "the policy holds a call that people cannot be asked about, or the run was cancelled before a permit was minted"},
			{From: Assessed, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before a permit was minted"},

			{From: Pending, On: Approve, Guard: personAgreed, To: Approved, Why: "a person agreed to exactly what is bound"},
			{From: Pending, On: Block, Guard: gateBlocks, To: Blocked, Why: "people denied the call, or nobody decided in time"},
			{From: Pending, On: Fail, Guard: effectBroke, To: Failed, Why: "the decision could not be obtained"},

			{From: Approved, On: Permit, Guard: permitMinted, To: Permitted, Why: "tool, definition and policy are still what the person agreed to"},
			{From: Approved, On: Block, Guard: gateBlocks, To: Blocked, Why: "what was approved is not what would run now"},
			{From: Approved, On: Fail, Guard: effectBroke, To: Failed, Why: "the world could not be looked at again"},

			{From: Permitted, On: Dispatch, Guard: permitIntact, To: Dispatched, Why: "the permit is consumed before the call leaves"},
			{From: Permitted, On: Block, Guard: gateBlocks, To: Blocked, Why: "the run was cancelled before the call left"},
			{From: Permitted, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the call left"},

			{From: Dispatched, On: Return, Guard: resultCaptured, To: Executed, Why: "the one call came back; its raw result is kept"},
			{From: Dispatched, On: Fail, Guard: effectBroke, To: Failed, Why: "the call broke; what is known of its effect is said"},

			{From: Executed, On: Parse, Guard: outputTyped, To: Typed, Why: "the structured content is of the tool's output type"},
			{From: Executed, On: Answer, Guard: answeredRaw, To: Answered, Why: "the result is given raw, with the note why it is untyped"},

			{From: Typed, On: Summarize, Guard: evidenceLocked, To: Summarized, Why: "every claim stands in evidence that was found"},
			{From: Typed, On: Answer, Guard: answeredTyped, To: Answered, Why: "no summary was asked for, or it was refused"},

			{From: Summarized, On: Answer, Guard: answeredSummarized, To: Answered, Why: "the result is given with its summary"},
		},
		Claims: fsm.Claims{
			Effect:     Dispatched,
			EffectOn:   Dispatch,
			Dominators: []fsm.State{Screened, Discovered, Planned, Validated, Authorized, Assessed, Permitted},
			Between:    []fsm.Between{{From: Pending, To: Permitted, Via: Approved}},
			Exits: []fsm.Exits{
				{States: []fsm.State{
					Received, Screened, Discovered, Planned, Validated, Authorized, Assessed, Pending, Approved, Permitted,
				}, On: []fsm.Trigger{Block, Fail}},
				{States: []fsm.State{Assessed, Approved}, On: []fsm.Trigger{Permit}},
				{States: []fsm.State{Dispatched}, On: []fsm.Trigger{Return, Fail}},
				{States: []fsm.State{Executed, Typed, Summarized}, On: []fsm.Trigger{Answer}},
			},
			SoleEntry: []fsm.State{
				Screened, Discovered, Planned, Validated, Authorized, Assessed, Pending, Approved, Dispatched, Executed,
				Typed, Summarized, NeedsInfo,
			},
		},
	}
}
