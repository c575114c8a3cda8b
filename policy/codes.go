package policy

import "pgfsm/policy/rules"

// Code is a stable, machine-readable name for one reason of a refusal or failure. Codes are never renamed or reused;
// docs/reference/errors.md is generated from [Codes].
type Code string

// The codes.
const (
	CodeInputDenied   Code = "input_denied"
	CodeInputTooLarge Code = "input_too_large"
	CodeInputNotText  Code = "input_not_text"

	CodeArgumentsTooLarge Code = "arguments_too_large"

	CodeNoServers     Code = "no_servers"
	CodeServerUnknown Code = "server_unknown"
	CodeServerDown    Code = "server_down"
	CodeToolUnknown   Code = "tool_unknown"
	CodeToolAmbiguous Code = "tool_ambiguous"

	CodePlanTooLarge  Code = "plan_too_large"
	CodePlanNotStrict Code = "plan_not_strict"
	CodePlanInvalid   Code = "plan_invalid"
	CodePlanEmpty     Code = "plan_empty"
	CodeFinalAnswer   Code = "final_answer_refused"

	CodeSchemaRefused    Code = "schema_refused"
	CodeArgumentsInvalid Code = "arguments_invalid"

	CodeToolNotAllowed        Code = "tool_not_allowed"
	CodeToolDefinitionChanged Code = "tool_definition_changed"

	CodeToolNotGranted      Code = "tool_not_granted"
	CodeArgumentsNotGranted Code = "arguments_not_granted"
	CodeGrantTaskMissing    Code = "grant_task_missing"
	CodeGrantExhausted      Code = "grant_exhausted"

	CodePolicyDenied      Code = "policy_denied"
	CodePolicyFailed      Code = rules.CodeFailed
	CodePolicySpent       Code = rules.CodeSpent
	CodeApprovalRequired  Code = "approval_required"
	CodeApprovalDenied    Code = "approval_denied"
	CodeApprovalExpired   Code = "approval_expired"
	CodeApprovalMismatch  Code = "approval_mismatch"
	CodeBundleChanged     Code = "bundle_changed"
	CodeRoundUnapprovable Code = "round_not_approvable"

	CodeOutputUntyped  Code = "output_untyped"
	CodeResultTooLarge Code = "result_too_large"

	CodeCancelled     Code = "cancelled"
	CodeInterrupted   Code = "interrupted"
	CodeIndeterminate Code = "indeterminate"
	CodeTimeout       Code = "deadline_exceeded"
	CodePlannerFailed Code = "planner_failed"
	CodeEffectFailed  Code = "effect_failed"
	CodeRecordFailed  Code = "record_failed"
)

// CodeDoc documents one code.
type CodeDoc struct {
	Code    Code
	Gate    Gate
	Meaning string
	Remedy  string
}

// Remedy returns what to do about a code; it is empty for an unknown code.
func Remedy(code Code) string {
	for _, doc := range Codes() {
		if doc.Code == code {
			return doc.Remedy
		}
	}
	return ""
}

// Codes lists every code once, in the order in which a run can meet them. Codes that a package of a gate defines
// (schema, evidence) and the transport's codes are listed here too, so that there is one table.
func Codes() []CodeDoc {
	return []CodeDoc{
		{CodeInputDenied, GateInput, "A rule of the input policy names what the request asks for.", "Reword the request, or change input.deny or input.defaults."},
		{CodeInputTooLarge, GateInput, "A text for the input rules is larger than input.max_bytes, or becomes larger when its encodings are undone, or would cost too much to judge. Such texts are questions, answers to a server's questions, and calls that have rules. It is refused whole, never cut.", "Shorten the request or raise input.max_bytes."},
		{CodeInputNotText, GateInput, "The request is not valid UTF-8.", "Send UTF-8 text."},
		{CodeArgumentsTooLarge, GateInput, "The arguments of a call are larger than limits.arguments_bytes.", "Send less in one call: in parts, or as the path of a file."},
		{CodeNoServers, GateRun, "No configured server answered, so there is no tool to call.", "The reason names each server's error; start the servers or correct their addresses."},
		{CodePlannerFailed, GateRun, "The planner gave no output at all: its endpoint refused, broke off or answered with something else than one completion.", "Check the planner's endpoint; the trace contains its answer."},
		{CodePlanTooLarge, GatePlan, "The planner's output is larger than limits.plan_bytes.", "Raise limits.plan_bytes if the plan was honest."},
		{CodePlanEmpty, GatePlan, "The planner's output is empty or refuses to answer.", "Ask again, or ask more precisely."},
		{CodePlanNotStrict, GatePlan, "The planner's output is not exactly one strict JSON object: bad syntax, text around it, a duplicate name, invalid UTF-8, or too deep.", "The planner must answer with one JSON object and nothing else."},
		{CodePlanInvalid, GatePlan, "The JSON object is not one of the two plans: a member is missing, unknown or of the wrong type.", "See docs/reference/agent-contract.md for the two shapes."},
		{CodeFinalAnswer, GatePlan, "A final_answer may only ask for more information: needs_more_info must be true and the answer 1 to 500 bytes.", "Call a tool, or ask for what is missing."},
		{CodeServerUnknown, GateSchema, "The plan names a server that is not configured.", "pgfsm tools lists the servers."},
		{CodeServerDown, GateSchema, "The plan names a server that did not answer in time or answered wrongly.", "See servers in the result for the reason."},
		{CodeToolUnknown, GateSchema, "The server does not list a tool of that name. Names are compared byte for byte.", "pgfsm tools lists the live catalog."},
		{CodeToolAmbiguous, GateSchema, "The server lists the name more than once; nobody can say which tool would run.", "Have the server fixed."},
		{CodeSchemaRefused, GateSchema, "The tool's inputSchema cannot be used safely, so the tool is out of the catalog.", "pgfsm tools shows the reason; have the server fixed."},
		{CodeArgumentsInvalid, GateSchema, "The arguments do not conform to the tool's inputSchema, or carry a name that it does not know.", "Correct the arguments at the places that the reason names."},
		{"arguments_too_complex", GateSchema, "Judging these arguments against this recursive schema would take too much work.", "Send arguments that nest less."},
		{CodeToolNotAllowed, GateAllowlist, "The tool is not on the allowlist. Default is deny.", "Add it to the allowlist file if agents may call it."},
		{CodeToolDefinitionChanged, GateAllowlist, "The tool's definition is not the one that was judged or pinned, or the server has announced a change of its tools since they were listed. If the announcement arrives between the permit and the call, the run fails and nothing is sent.", "pgfsm pins diff shows what changed; pin it again with pgfsm pins approve, or run again."},
		{CodeToolNotGranted, GateGrant, "A grant in force does not name the tool.", "Ask for a grant that names it. A grant narrows; it never widens."},
		{CodeArgumentsNotGranted, GateGrant, "A grant in force does not cover the arguments, or they lack a value that it restricts.", "The reason names the grant and the place."},
		{CodeGrantTaskMissing, GateGrant, "A grant in force counts calls, and the run belongs to no task.", "Name the task: pgfsm run --task ID."},
		{CodeGrantExhausted, GateGrant, "The task has made, or may have made, as many calls as a grant in force allows.", "Ask for another grant, or begin another task."},
		{CodePolicyDenied, GatePolicy, "A policy denies this call, or none allows it.", "The reason names the policy."},
		{CodePolicyFailed, GatePolicy, "A condition of a policy that could deny or hold the call cannot be judged for these arguments, so the call is denied.", "The reason names policy and condition; write the condition for arguments that are missing or of another type too, as with has(args.amount)."},
		{CodePolicySpent, GatePolicy, "The conditions that the risk rules and policies ask about this call may cost more than the budget of one decision, so the rest is not evaluated and the call is denied.", "The reason names the policy or risk rule; narrow the globs of those with loops or patterns, or send smaller arguments."},
		{CodeApprovalRequired, GatePolicy, "A person has to decide before the call is made.", "Approve or deny the run."},
		{CodeRoundUnapprovable, GatePolicy, "A person would have to decide, and the call carries answers to questions of the server (inputResponses, requestState), which people are not shown.", "Have the policy allow or deny the rounds of this tool; only calls without them can be held."},
		{CodeApprovalDenied, GateApproval, "An approver denied the call.", "Read the approver's reason."},
		{CodeApprovalExpired, GateApproval, "Nobody decided in time. Expiry counts as denial.", "Ask again."},
		{CodeApprovalMismatch, GateApproval, "The approval does not permit this call: the call changed since, too few eligible approvers agreed, or a token of the requester or of an approver was revoked.", "Ask for a new approval."},
		{CodeBundleChanged, GateApproval, "The configuration has changed since the approval.", "Ask again under the current configuration, or restore the old one."},
		{CodeCancelled, GateRun, "The run was cancelled. Before the call it is blocked, with nothing sent; during the call it failed.", "See effect: not_sent means nothing was called; unknown means look first."},
		{CodeInterrupted, GateRun, "The process ended before anything was called.", "Run it again."},
		{CodeIndeterminate, GateRun, "The process ended while the call was in flight. It may have happened. It is never made again.", "Check in the system behind the tool whether the call happened, then decide whether to ask again."},
		{CodeTimeout, GateRun, "The run took longer than limits.run_timeout, or the model longer than planner.llm.timeout. The time of the call does not count.", "See effect: not_sent means nothing was called; unknown means look first."},
		{CodeEffectFailed, GateRun, "An effect that the run needed failed.", "Read the reason: it names the effect."},
		{CodeResultTooLarge, GateRun, "The result is larger than limits.result_bytes. The call has happened.", "Raise limits.result_bytes or ask the tool for less."},
		{CodeOutputUntyped, GateOutput, "The result has no usable structured content or no registered type, so it is shown raw.", "Register a type under outputs, or have the server declare outputSchema."},
		{"server_unreachable", GateRun, "The server could not be reached or started.", "The reason says what was tried."},
		{"server_timeout", GateRun, "The server did not connect or list its tools within its connect_timeout. Or it neither answered a call nor reported progress within its timeout, or took longer than its timeout_total.", "Look at the server, or raise the timeout. See effect: unknown means look first."},
		{"server_protocol", GateRun, "The server's answer is not the protocol it should speak.", "The reason says where."},
		{CodeRecordFailed, GateRun, "The run's record cannot be written, so the run stopped.", "Free space or repair the traces folder. See effect: not_sent means nothing was called; unknown means look first."},
		{"outcome_delivered", GateRun, "Another request has already received the outcome of the held call.", "pgfsm ledger show RUN prints the outcome."},
		{"input_refused", GateRun, "The server asks for input that the operator does not expose to agents, that the client does not support, or that the client did not give. The call has been made.", "Expose input_required, and what is asked for, or use another client."},
		{"result_refused", GateRun, "The server answered with a kind of result that pgfsm did not ask for, such as a task. The call has been made.", "Look at the system behind the tool; have the server fixed."},
		{"refused", GateRun, "The only code that an agent gets for refusals by the operator's rules if denials are opaque.", "The log and the ledger have the code."},
		{"rpc_error", GateRun, "The server answered the call with a JSON-RPC error.", "The reason holds the server's words. The effect is unknown: look first."},
		{"call_invalid", GateRun, "The call cannot be put on the wire as it is.", "Never expected: keep the trace and report it."},
		{"permit_refused", GateRun, "The connection found no unconsumed permit for the bytes that were to leave. Nothing was sent.", "Never expected: keep the trace and report it."},
		{"closed", GateRun, "The connections were being closed.", "Run it again."},
		{"server_died", GateRun, "The server's process or connection ended.", "The reason holds the end of its standard error."},
		{"catalog_too_large", GateRun, "The server lists more tools, pages or bytes than are read.", "Have the server list less."},
		{"redirect_refused", GateRun, "The server answered with a redirect. None is followed.", "Configure the final address."},
		{"origin_refused", GateRun, "The server pointed to another origin.", "Only the configured origin is used."},
		{"too_many_sessions", GateRun, "The gateway's limit of open sessions with the server is reached, in all or for one client.",
			"Try again later; end sessions that are not used."},
		{"evidence_missing", GateEvidence, "A claim's evidence is not a verbatim part of one value of the typed result.", "The summary is dropped; the typed result stands."},
		{"evidence_too_short", GateEvidence, "A claim's evidence has fewer than three words and is not a whole value, line, bullet or cell.", "The summary is dropped; the typed result stands."},
		{"claim_token_unsupported", GateEvidence, "A number, date or identifier of a claim is not in its evidence.", "The summary is dropped; the typed result stands."},
		{"summary_not_strict", GateEvidence, "The summary is not the one strict JSON object it must be.", "The summary is dropped; the typed result stands."},
		{"summary_too_large", GateEvidence, "The summary has too many items or too long a claim.", "The summary is dropped; the typed result stands."},
		{"summary_empty", GateEvidence, "The summary has no items.", "The typed result stands."},
	}
}
