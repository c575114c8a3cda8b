// Package lint finds mistakes in policies and risk rules before they judge a call. It is pure, and
// it compares policies, risk rules, allowlist, roles, and the servers' definitions of their tools
// with each other.
//
// [Codes] lists the findings. An [Error] holds for every call, or for every tool that the policy
// can be about.
//
// # Conditions
//
// Package prove divides the calls that the globs of a policy match, by tools of any names, schemas
// and annotations, and with every risk that modes, baselines and set_mode_by_score leave. A
// condition of a form that it does not divide can be true, false or fail. So what lint reports
// holds for every call, and it does not report everything that holds.
//
// # Reachability
//
// A policy is unreachable if policies above it decide every call that it would decide. A policy in
// shadow does not make policies below it unreachable. [ApprovalUnreachable] takes the place of
// [PolicyUnreachable] if the policy asks for approval and a policy above allows. It is also
// reported for a policy that is reached only where it does not ask. A spent budget (package rules)
// is not considered.
//
// # Monotonicity
//
// A policy that stops a call must also stop it at a higher risk: a failing risk rule raises the
// mode, so with require_approval_if: risk.mode == "review", a call with an argument of the wrong
// type would not be held. [RiskNotMonotonic] is a policy that stops a call at one mode and score
// and not at a higher one, where a policy allows the call. This can be intended, so it is a
// [Warning].
//
// # Arguments
//
// CEL's checker compares expressions with the inputSchemas of all allowlisted tools that the globs
// match, in the same closed world as in calls. Lint reports a use only if it is wrong for each of
// these tools: no tool has an argument of this name, or none has it with this type. It reports
// nothing if one of the schemas is unknown: the tool is not in the catalog, its server is down, or
// its schema was refused. Predicates of risk rules are compared in the same way.
//
// # Tools
//
// For each allowlisted tool that is not annotated read-only, lint follows a call in the configured
// environment through the policies and reports the first that allows it without an approval. Lint
// assumes that a require_approval_if that can be true for the tool holds the call. Annotations are
// the server's claims: lint does not find a tool with false annotations.
//
// # Labels
//
// A tool can change the results of another tool of its server if it is not annotated read-only. A
// label that trusts results is reported if some call of such a tool is made without an approval.
// found() is reported if no tool that the globs match has a target.
package lint
