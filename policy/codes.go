package policy

import "pgfsm/policy/rules"

// Code is a stable, machine-readable name for one reason of a refusal or failure. Codes are never
// renamed or reused; docs/reference/errors.md is generated from [Codes].
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
	CodeSchemaUnpinned   Code = "schema_unpinned"
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
	CodeBuildChanged      Code = "build_changed"
	CodeRoundUnapprovable Code = "round_not_approvable"
	CodeTooManyHeld       Code = "too_many_held"

	CodeCredentialsNeeded  Code = "credentials_needed"
	CodeCredentialsRefused Code = "credentials_refused"
	CodeCredentialsChanged Code = "credentials_changed"

	CodeOutputUntyped  Code = "output_untyped"
	CodeResultTooLarge Code = "result_too_large"

	CodeTooManySessions Code = "too_many_sessions"

	CodeCancelled     Code = "cancelled"
	CodeInterrupted   Code = "interrupted"
	CodeIndeterminate Code = "indeterminate"
	CodeRewritten     Code = "rewritten"
	CodeUnreported    Code = "unreported"

	CodeReportedFailed Code = "reported_failed"
	CodeCallReused     Code = "call_id_reused"
	CodeTimeout        Code = "deadline_exceeded"
	CodePlannerFailed  Code = "planner_failed"
	CodeEffectFailed   Code = "effect_failed"
	CodeRecordFailed   Code = "record_failed"
	CodeRateLimited    Code = "rate_limited"
)

// CodeDoc documents one code.
type CodeDoc struct {
	Code    Code
	Gate    Gate
	Meaning string
	Remedy  string
}

// Remedy returns the remedy for a code; it is empty for an unknown code.
func Remedy(code Code) string {
	for _, doc := range Codes() {
		if doc.Code == code {
			return doc.Remedy
		}
	}
	return ""
}

// Codes lists every code once, in the order in which a run can meet them. Codes that a package of a
// gate defines (schema, evidence) and the transport's codes are listed here too, so that there is
// one table.
func Codes() []CodeDoc {
	return []CodeDoc{
		{CodeInputDenied, GateInput, "A rule of the input policy matches the request.", "Reword the request, or change input.deny or input.defaults."},
		{CodeInputTooLarge, GateInput, "A question, an answer to a server's question, or a call that input rules judge is larger than " +
			"input.max_bytes. Or it exceeds this limit when pgfsm decodes it, or the rules would take too much work. pgfsm never " +
			"truncates it.", "Shorten " +
			"the request or raise input.max_bytes."},
		{CodeInputNotText, GateInput, "The request is not valid UTF-8.", "Send UTF-8 text."},
		{CodeArgumentsTooLarge, GateInput, "The arguments of a call have more bytes than limits.arguments_bytes, or more than 50,000 values.", "Send less in one call: in parts, or as the path of a file."},
		{CodeNoServers, GateRun, "No configured server answered, so there is no tool to call.", "The reason names each server's error; start the servers or correct their addresses."},
		{CodePlannerFailed, GateRun, "The planner gave no output: its endpoint refused the request, closed the connection, or did not answer with one " +
			"completion.", "Check the planner's endpoint; the trace contains its answer."},
		{CodePlanTooLarge, GatePlan, "The planner's output is larger than limits.plan_bytes.", "If the plan is legitimate, raise limits.plan_bytes."},
		{CodePlanEmpty, GatePlan, "The planner's output is empty or refuses to answer.", "Ask again, or ask more precisely."},
		{CodePlanNotStrict, GatePlan, "The planner's output is not exactly one strict JSON object: bad syntax, text around it, a duplicate name, " +
			"invalid UTF-8, or too deep.", "The planner must answer with only one JSON object."},
		{CodePlanInvalid, GatePlan, "The JSON object is not one of the two plans: a member is missing, unknown or of the wrong type.", "See docs/reference/agent-contract.md for the two shapes."},
		{CodeFinalAnswer, GatePlan, "A final_answer may only ask for more information: needs_more_info must be true and the answer 1 to 500 " +
			"bytes.", "Call a tool, or ask for missing information."},
		{CodeServerUnknown, GateSchema, "The plan names a server that is not configured.", "pgfsm tools lists the servers."},
		{CodeServerDown, GateSchema, "The plan names a server that did not answer in time, or gave an invalid answer.", "pgfsm tools " +
			"asks the servers again, and shows why one does not answer."},
		{CodeToolUnknown, GateSchema, "The server does not list a tool of that name. Names are compared byte for byte.", "pgfsm tools lists the live catalog."},
		{CodeToolAmbiguous, GateSchema, "The server lists the name more than once, so it is not clear which tool would run.", "Have the server " +
			"fixed."},
		{CodeSchemaRefused, GateSchema, "pgfsm cannot use the tool's inputSchema safely, so the catalog does not contain the tool.", "pgfsm tools " +
			"shows the reason. Have the server fixed, or write a schema in its place (servers.NAME.schemas)."},
		{CodeSchemaUnpinned, GateSchema, "The configuration has a schema in place of the tool's inputSchema, and the tool is not pinned, so the server could " +
			"change the tool.", "Pin the tool: pgfsm pins approve SERVER TOOL."},
		{CodeArgumentsInvalid, GateSchema, "The arguments do not conform to the tool's inputSchema, or contain a key that it does not " +
			"name.", "Correct the arguments at the places that the reason names."},
		{"arguments_too_complex", GateSchema, "Validating these arguments against this recursive schema would take too much work.", "Send arguments " +
			"with less nesting."},
		{CodeToolNotAllowed, GateAllowlist, "The tool is not on the allowlist, so pgfsm denies the call.", "If agents may call the tool, add it to the " +
			"allowlist file."},
		{CodeToolDefinitionChanged, GateAllowlist, "The tool's definition differs from the judged or pinned definition, or the server announced " +
			"changed tools after pgfsm listed them. If the announcement arrives between the permit and the call, the run fails and pgfsm sends " +
			"nothing.", "If the tool is pinned, pgfsm pins diff shows the change, and pgfsm pins approve pins the new definition. Otherwise run " +
			"again."},
		{CodeToolNotGranted, GateGrant, "A grant of the run does not name the tool.", "Ask the operator for a grant that names the tool."},
		{CodeArgumentsNotGranted, GateGrant, "A grant of the run does not permit the arguments, or an argument that it restricts is missing.", "The " +
			"reason names the grant and the place in the arguments."},
		{CodeGrantTaskMissing, GateGrant, "A grant of the run counts calls, and the run has no task.", "Name the task: pgfsm run --task ID."},
		{CodeGrantExhausted, GateGrant, "The task has made as many calls as a grant of the run allows. A call with an unknown outcome counts.", "Ask " +
			"the operator for another grant, or start another task."},
		{CodePolicyDenied, GatePolicy, "A policy denies this call, or none allows it.",
			"The reason names the policy; if none matched, pgfsm policy explain says why."},
		{CodePolicyFailed, GatePolicy, "A condition of a policy that could deny or hold the call failed for these arguments, so the call is " +
			"denied.", "The reason names policy and condition. Make the condition handle missing arguments and other types, for example with " +
			"has(args.amount)."},
		{CodePolicySpent, GatePolicy, "The conditions of risk rules and policies cost more than the budget of one decision, so pgfsm stopped the " +
			"evaluation and denied the call.", "The reason names the policy or risk rule; narrow the globs of rules with loops or patterns, or send " +
			"smaller arguments."},
		{CodeApprovalRequired, GatePolicy, "A policy holds the call until approvers have decided.", "Approve or deny the run."},
		{CodeRoundUnapprovable, GatePolicy, "A policy holds the call, but the call contains answers to the server's questions (inputResponses, " +
			"requestState), which approvers cannot see.", "Change the policy so that it allows or denies calls of this tool; pgfsm can hold only " +
			"calls without such answers."},
		{CodeTooManyHeld, GateApproval, "A policy holds the call, but as many calls of this caller wait for approvers as limits.held allows.",
			"Have approvers decide about the calls that wait, then request the call again."},
		{CodeApprovalDenied, GateApproval, "An approver denied the call.", "Read the approver's reason."},
		{CodeApprovalExpired, GateApproval, "Approvers did not decide in time, so the call counts as denied.", "Request the call again."},
		{CodeApprovalMismatch, GateApproval, "The approval does not permit this call: the call changed since the approval, too few eligible people " +
			"approved it, or a token of the requester or of an approver was revoked.", "Request the call again."},
		{CodeBundleChanged, GateApproval, "The active configuration judges the held call otherwise than the approvers saw it, or cannot be read.",
			"The reason names what changed. Request the call again."},
		{CodeBuildChanged, GateApproval, "This version of pgfsm judges the held call otherwise than the version that held it.",
			"Request the call again."},
		{CodeCredentialsNeeded, GateRun, "Each person uses this server with an account of their own, and the caller has connected none. pgfsm did not send the call.",
			"Open the URL of the answer, sign in and connect the account; then send the call again."},
		{CodeCredentialsRefused, GateRun, "The server refused the credentials of the caller's connection, or asked for more scopes. pgfsm does not repeat the call.",
			"See effect: unknown means: check the system behind the tool first. The next call has another token if pgfsm can refresh it. If the server goes on refusing, connect the account again at the URL of the answer."},
		{CodeCredentialsChanged, GateRun, "The caller's connection was ended or replaced after the call was requested, so pgfsm did not send the call with it.",
			"Request the call again. If the connection has ended, connect the account first."},
		{CodeCancelled, GateRun, "The run was cancelled: before the call it ends as blocked, during the call as failed.", "See effect: not_sent means " +
			"nothing was called; unknown means: check the system behind the tool first."},
		{CodeInterrupted, GateRun, "The process ended, or lost its lease on the ledger, before the run made a call.", "Run it again."},
		{CodeCallReused, GateRun, "The client that makes the call itself used the id of an earlier call for a call with other arguments. No run began.",
			"Use another id for each call."},
		{CodeRewritten, GateRun, "The client reported that it made the call with other arguments than the permitted ones, perhaps because another " +
			"of its hooks changed them.", "Check in the system behind the tool what happened, and look at the client's other hooks."},
		{CodeReportedFailed, GateRun, "The client makes the call itself, and reported that the call failed. It may have had a part of its effect.",
			"Look at what the client says, and check in the system behind the tool what happened."},
		{CodeUnreported, GateRun, "The client makes the call itself, and did not report it in time. It may have made the call.",
			"Check in the system behind the tool whether the call happened before you request it again."},
		{CodeIndeterminate, GateRun, "The process ended, or lost its lease on the ledger, during the call. The server may have executed the call. " +
			"pgfsm never makes it again.", "Check in the system behind the tool whether the call happened before you request it again."},
		{CodeTimeout, GateRun, "The run took longer than limits.run_timeout (without the time of its call), or the model longer than " +
			"planner.llm.timeout.", "See effect: not_sent means nothing was called; unknown means: check the system behind the tool first."},
		{CodeEffectFailed, GateRun, "The run needed an effect, and the effect failed.", "Read the reason: it names the effect."},
		{CodeResultTooLarge, GateRun, "The result is larger than limits.result_bytes. The server executed the call.", "Raise limits.result_bytes, or " +
			"request less data."},
		{CodeOutputUntyped, GateOutput, "The result has no usable structured content or no registered type, so pgfsm shows it raw.", "Register a type " +
			"under outputs, or ask the server's author to declare an outputSchema."},
		{"server_unreachable", GateRun, "pgfsm could not reach or start the server.", "The reason has the error."},
		{"server_timeout", GateRun, "The server did not connect or list its tools within its connect_timeout. Or it neither answered a call nor " +
			"reported progress within its timeout, or took longer than its timeout_total.", "Check the server, or raise the timeout. See effect: " +
			"unknown means: check the system behind the tool first."},
		{"server_protocol", GateRun, "The server's answer is not valid in its protocol.", "The reason names the error. Have the server fixed."},
		{CodeRecordFailed, GateRun, "pgfsm could not write the run's record, so the run stopped.", "Free disk space, or repair the ledger. See " +
			"effect: not_sent means nothing was called; unknown means: check the system behind the tool first."},
		{CodeRateLimited, GateRun, "The caller, the server or the tool has used up its limit of limits.rate. No run began.", "Send the call again after " +
			"retry_after_s, or raise the limit."},
		{"outcome_delivered", GateRun, "Another request has already received the outcome of the held call.", "pgfsm ledger show RUN prints the outcome."},
		{"input_refused", GateRun, "The server asked for input that the operator does not expose or that the client does not support. The call was made.",
			"Expose input_required and the kind of question, or use a client of a revision that the server has."},
		{"result_refused", GateRun, "The server answered with a kind of result that pgfsm did not request, such as a task. The call was " +
			"made.", "Check the system behind the tool; have the server fixed."},
		{"refused", GateRun, "With serve.denials opaque, agents get this code for every refusal by the operator's rules.", "The log and the ledger " +
			"have the code."},
		{"rpc_error", GateRun, "The server answered the call with a JSON-RPC error.", "The reason has the server's message. The effect is unknown: " +
			"check the system behind the tool before you repeat the call."},
		{"client_tool", GateRun, "A coding agent executes this tool itself (servers.NAME.kind client). pgfsm judges such calls and never makes " +
			"them.", "Use the tool in the coding agent."},
		{"call_invalid", GateRun, "pgfsm cannot encode the call as a message.", "Never expected: keep the trace and report it."},
		{"permit_refused", GateRun, "There was no unconsumed permit for the bytes of the call. pgfsm sent nothing.", "Never expected: keep the trace " +
			"and report it."},
		{"closed", GateRun, "pgfsm was closing its connections.", "Run it again."},
		{"server_died", GateRun, "The server's process or connection ended.", "The reason has the last lines of its standard error."},
		{"catalog_too_large", GateRun, "The server lists more tools, pages or bytes than pgfsm reads.", "Configure the server to list fewer tools."},
		{"redirect_refused", GateRun, "The server answered with a redirect. pgfsm follows no redirect.", "Put the final address into the server's " +
			"url."},
		{"origin_refused", GateRun, "The server named an endpoint of another origin.", "Configure the origin that the server uses; pgfsm contacts no " +
			"other."},
		{CodeTooManySessions, GateRun, "As many sessions with servers are in use as limits.server_sessions allows, in total or for one client; or " +
			"1,024 with an http or sse server. No unused session could be ended.",
			"Try again later. If it comes again, raise limits.server_sessions, or let clients share sessions (servers.NAME.sessions)."},
		{"evidence_missing", GateEvidence, "A claim's evidence is not a verbatim part of one value of the typed result.", "The summary is dropped; the typed result stands."},
		{"evidence_too_short", GateEvidence, "A claim's evidence has fewer than three words and is not a whole value, line, bullet or cell.", "The summary is dropped; the typed result stands."},
		{"claim_token_unsupported", GateEvidence, "A number, date or identifier of a claim is not in its evidence.", "The summary is dropped; the typed result stands."},
		{"summary_not_strict", GateEvidence, "The summary is not one strict JSON object of the required form.", "The summary is dropped; the typed " +
			"result stands."},
		{"summary_too_large", GateEvidence, "The summary has too many items, or a claim is too long.", "The summary is dropped; the typed result " +
			"stands."},
		{"summary_empty", GateEvidence, "The summary has no items.", "The typed result stands."},
	}
}
