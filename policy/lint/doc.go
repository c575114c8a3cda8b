// Package lint finds mistakes in policies and risk rules before they judge a call. It is pure, and it compares policies, risk rules, allowlist, roles, and
// the servers' definitions of their tools with each other.
//
// [Codes] lists the findings. An [Error] holds for every call, or for every tool that the policy can be about.
//
// # Reachability
//
// A policy is unreachable if the policies above it decide every call that it matches: for every server, tool and environment
// that there could be, not only for those that are configured. A [PolicyUnreachable] is exact:
//
//   - Package glob compares each policy above with this one. A policy above counts only if its globs match every call that this one's globs match;
//     several such policies count together.
//   - Their conditions are evaluated at every point: each mode and score that the risk rules can give (one score for each range that no test divides),
//     each answer to `pinned` and the hints, and each answer (true, false, fails) to any other test. The same test has the same answer everywhere;
//     different tests count as independent. A test of a name (==, in, startsWith, endsWith, contains) has the answer that the match gives it. There are
//     at most 4,096 points.
//
// Lint does not combine policies that each match only a part of these calls. If together they match every sample of names, the policy gets the note
// [ReachabilityUnknown]. A policy without a finding may still be unreachable through conditions on arguments (args.n > 5 above args.n > 9), or through more
// tests than 4,096 points hold. A spent budget (package rules) is not considered.
//
// [ApprovalUnreachable] takes the place of [PolicyUnreachable] if the policy asks for approval and a policy above allows. It is also reported for a policy
// that is reached only where it does not ask, and for a require_approval_if that is true only where deny is true or fails. A policy in shadow does not make
// policies below it unreachable.
//
// # Conditions
//
// CEL evaluates each condition with unknown values for everything that depends on the call, once for each combination of values that literals distinguish
// ([condition.Reading]). The globs of the policy count, too: with the glob `prod` for env, env != 'prod' is true for no call. A text can be too long for a
// condition ([condition.MaxName]), so actor.id == 'a' || actor.id != 'a' is not always true: it can fail.
//
// # Monotonicity
//
// A policy that stops a call must also stop it at a higher risk: a failing risk rule raises the mode, so with require_approval_if: risk.mode == "review", a
// call with an argument of the wrong type would not be held. [RiskNotMonotonic] is a policy that stops a call at one mode and score and not at a higher
// one, where a policy allows the call. Only modes and scores count that the risk rules can give together. The search takes sample names and every answer to
// the policy's other tests. A policy that may stop the call at the higher risk counts as stopping it. This can be intended, so it is a [Warning].
//
// # Arguments
//
// Lint compares arguments with the compiled inputSchemas of all allowlisted tools that the globs match, in the same closed world as in calls. It reports a
// use only if it is wrong for each of these tools: no tool has an argument of this name, or none has it with this type. It reports nothing if one of the
// schemas is unknown: the tool is not in the catalog, its server is down, or its schema was refused. Predicates of risk rules are compared in the same way.
//
// # Tools
//
// For each allowlisted tool that is not annotated read-only, lint follows a call in the configured environment through the policies and reports the first
// that allows it without an approval. Lint assumes that a require_approval_if that can be true for the tool holds the call. Annotations are the server's
// claims: lint does not find a tool with false annotations.
package lint
