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
	Delegated  fsm.State = "delegated"
	Reported   fsm.State = "reported"
	Unreported fsm.State = "unreported"
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
	Delegate  fsm.Trigger = "delegate"
	Report    fsm.Trigger = "report"
	Lapse     fsm.Trigger = "lapse"
	Block     fsm.Trigger = "block"
	Fail      fsm.Trigger = "fail"
)

// Table is the machine: the specification, read from top to bottom. Everything else about the
// machine (the proofs, the report, the pictures, the transitions that a run may take) is made from
// these rows and from nothing else.
func Table() fsm.Table[*Run] {
	return fsm.Table[*Run]{
		Name: "pgfsm",
		Places: []fsm.Place{
			{State: Received, Established: "the request is captured and digested"},
			{State: Screened, Established: "no input rule matched the request (INV-0)"},
			{State: Discovered, Established: "the live catalog and the effective allowlist are known"},
			{State: Planned, Established: "the planner's output is one strict JSON plan (INV-1)"},
			{State: Validated, Established: "server and tool exist, the operator allows the tool, and the arguments conform to its inputSchema (INV-2)"},
			{State: Authorized, Established: "the tool with the judged definition is on the effective allowlist, and every grant covers the call (INV-3)"},
			{State: Assessed, Established: "risk rules and policies have judged the call"},
			{State: Pending, Established: "the run waits until approvers decide"},
			{State: Approved, Established: "approvers approved exactly this call"},
			{State: Permitted, Established: "a permit for exactly one call with exactly these bytes exists"},
			{State: Dispatched, Established: "the permit is consumed, on disk; the call is under way"},
			{State: Executed, Established: "the raw result is recorded (INV-6)"},
			{State: Typed, Established: "the structured content conforms to the registered output type (INV-4)"},
			{State: Summarized, Established: "every item of the summary quotes the result word for word, with its place (INV-5)"},
			{State: Answered, Established: "the caller gets the result", Terminal: true},
			{State: Delegated, Established: "the permit is handed out, on disk; the client makes the call, or does not"},
			{State: Reported, Established: "the client says that it made the call", Terminal: true},
			{State: Unreported, Established: "the client did not say in time whether it made the call", Terminal: true},
			{State: NeedsInfo, Established: "the caller gets the planner's question", Terminal: true},
			{State: Blocked, Established: "a gate denied the call, or the run was cancelled; nothing was called", Terminal: true},
			{State: Failed, Established: "an effect failed, or the run was interrupted", Terminal: true},
		},
		Rows: []fsm.Row[*Run]{
			{From: Received, On: Screen, Guard: screenAllows, To: Screened, Why: "no input rule matched"},
			{From: Received, On: Block, Guard: gateBlocks, To: Blocked, Why: "an input rule matched, or the request is too large or not text"},
			{From: Received, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before it was screened"},

			{From: Screened, On: Discover, Guard: catalogKnown, To: Discovered, Why: "at least one server listed its tools"},
			{From: Screened, On: Block, Guard: gateBlocks, To: Blocked, Why: "the run was cancelled before discovery ended"},
			{From: Screened, On: Fail, Guard: effectBroke, To: Failed, Why: "no server answered"},

			{From: Discovered, On: Plan, Guard: planStrict, To: Planned, Why: "the planner's output is one strict JSON plan"},
			{From: Discovered, On: Block, Guard: gateBlocks, To: Blocked, Why: "the planner's output is not one strict JSON plan"},
			{From: Discovered, On: Fail, Guard: effectBroke, To: Failed, Why: "the planner gave no output"},

			{From: Planned, On: Validate, Guard: argumentsConform, To: Validated, Why: "the tool exists, allowlist, pins and grants permit it, and the arguments conform to its schema"},
			{From: Planned, On: Ask, Guard: plannerAsks, To: NeedsInfo, Why: "the planner asks for missing information"},
			{From: Planned, On: Block, Guard: gateBlocks, To: Blocked, Why: "the tool does not exist; or the allowlist, a pin or a grant does not permit it; or its schema refuses the arguments"},
			{From: Planned, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the plan was validated"},

			{From: Validated, On: Authorize, Guard: toolListed, To: Authorized, Why: "the allowlist permits the tool with the judged definition, and every grant covers the call"},
			{From: Validated, On: Block, Guard: gateBlocks, To: Blocked, Why: "a grant does not cover the call, or the run was cancelled before the call was authorized"},
			{From: Validated, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the call was authorized"},

			{From: Authorized, On: Assess, Guard: riskKnown, To: Assessed, Why: "risk rules and policies judged exactly this call"},
			{From: Authorized, On: Block, Guard: gateBlocks, To: Blocked, Why: "a policy denies the call, or no policy allows it"},
			{From: Authorized, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the call was assessed"},

			{From: Assessed, On: Permit, Guard: permitMinted, To: Permitted, Why: "the policy allows the call, and the machine mints a permit for it"},
			{From: Assessed, On: Hold, Guard: policyHolds, To: Pending, Why: "a policy holds the call for approvers"},
			{From: Assessed, On: Block, Guard: gateBlocks, To: Blocked, Why: "the policy holds a call that approvers cannot judge, or the run was cancelled before the permit was minted"},
			{From: Assessed, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before the permit was minted"},

			{From: Pending, On: Approve, Guard: personAgreed, To: Approved, Why: "approvers approved exactly the bound call"},
			{From: Pending, On: Block, Guard: gateBlocks, To: Blocked, Why: "an approver denied the call, or nobody decided in time"},
			{From: Pending, On: Fail, Guard: effectBroke, To: Failed, Why: "pgfsm could not get the decision"},

			{From: Approved, On: Permit, Guard: permitMinted, To: Permitted, Why: "the active configuration judges the call as the approvers saw it"},
			{From: Approved, On: Block, Guard: gateBlocks, To: Blocked, Why: "the call, the tool or its judgement changed since the approval"},
			{From: Approved, On: Fail, Guard: effectBroke, To: Failed, Why: "pgfsm could not list the tools again"},

			{From: Permitted, On: Dispatch, Guard: permitIntact, To: Dispatched, Why: "the machine consumes the permit before pgfsm sends the call"},
			{From: Permitted, On: Block, Guard: gateBlocks, To: Blocked, Why: "the run was cancelled before pgfsm sent the call"},
			{From: Permitted, On: Fail, Guard: effectBroke, To: Failed, Why: "the run was interrupted before pgfsm sent the call"},

			{From: Permitted, On: Delegate, Guard: permitDelegated, To: Delegated, Why: "the machine hands the permit out to the client that makes the call itself"},
			{From: Delegated, On: Report, Guard: reportCaptured, To: Reported, Why: "the client reported the call"},
			{From: Delegated, On: Lapse, Guard: reportMissing, To: Unreported, Why: "no report came in time"},

			{From: Dispatched, On: Return, Guard: resultCaptured, To: Executed, Why: "the server answered the call; the raw result is recorded"},
			{From: Dispatched, On: Fail, Guard: effectBroke, To: Failed, Why: "the call failed; its effect is recorded as not_sent, unknown or done"},

			{From: Executed, On: Parse, Guard: outputTyped, To: Typed, Why: "the structured content conforms to the tool's output type"},
			{From: Executed, On: Answer, Guard: answeredRaw, To: Answered, Why: "the caller gets the raw result, and a note says why it is untyped"},

			{From: Typed, On: Summarize, Guard: evidenceLocked, To: Summarized, Why: "the result contains the evidence of every claim"},
			{From: Typed, On: Answer, Guard: answeredTyped, To: Answered, Why: "the request asks for no summary, or the evidence gate refused the summary"},

			{From: Summarized, On: Answer, Guard: answeredSummarized, To: Answered, Why: "the caller gets the result with its summary"},
		},
		Claims: fsm.Claims{
			Effects: []fsm.Effect{
				{State: Dispatched, On: Dispatch,
					Dominators: []fsm.State{Screened, Discovered, Planned, Validated, Authorized, Assessed, Permitted}},
				{State: Delegated, On: Delegate,
					Dominators: []fsm.State{Screened, Discovered, Planned, Validated, Authorized, Assessed, Permitted}},
			},
			Between: []fsm.Between{{From: Pending, To: Permitted, Via: Approved}},
			Exits: []fsm.Exits{
				{States: []fsm.State{
					Received, Screened, Discovered, Planned, Validated, Authorized, Assessed, Pending, Approved, Permitted,
				}, On: []fsm.Trigger{Block, Fail}},
				{States: []fsm.State{Assessed, Approved}, On: []fsm.Trigger{Permit}},
				{States: []fsm.State{Permitted}, On: []fsm.Trigger{Dispatch, Delegate}},
				{States: []fsm.State{Dispatched}, On: []fsm.Trigger{Return, Fail}},
				{States: []fsm.State{Delegated}, On: []fsm.Trigger{Report, Lapse}},
				{States: []fsm.State{Executed, Typed, Summarized}, On: []fsm.Trigger{Answer}},
			},
			SoleEntry: []fsm.State{
				Screened, Discovered, Planned, Validated, Authorized, Assessed, Pending, Approved, Dispatched, Executed,
				Typed, Summarized, Delegated, Reported, Unreported, NeedsInfo,
			},
		},
	}
}
