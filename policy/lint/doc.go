// Package lint finds what is wrong with policies and risk rules before they judge a call. It is pure, and it compares
// policies, risk rules, allowlist, roles, and the servers' definitions of their tools with each other.
//
// [Codes] lists the findings. An [Error] holds for every call, or for every tool that the policy can be about.
//
// # Reachability
//
// A policy is unreachable if the policies above it decide every call that it matches: for every server, tool and environment
// that there could be, not only for those that are configured. A [PolicyUnreachable] is exact:
//
//   - Package glob compares each policy above with this one. Only policies count whose match fits every call that this one's
//     match fits, alone or several of them.
//   - Their conditions are evaluated at every point: each mode and score that the risk rules can give (of scores that no test
//     tells apart, one), each answer to `pinned` and the hints, and each answer (true, false, fails) to any other test. The
//     same test has the same answer everywhere; different tests count as independent. A test of a name (==, in, startsWith,
//     endsWith, contains) has the answer that the match gives it. There are at most 4,096 points.
//
// Policies that each fit only a part of these calls are not compared together. If no sample of names escapes all of them, the
// policy gets the note [ReachabilityUnknown]. A policy without a finding may still be unreachable through conditions on arguments
// (args.n > 5 above args.n > 9), or through more tests than 4,096 points hold. A spent budget (package rules) is not considered.
//
// [ApprovalUnreachable] takes the place of [PolicyUnreachable] if the policy asks for approval and a policy above allows. It is
// also reported for a policy that is reached only where it does not ask, and for a require_approval_if that is true only where
// deny is true or fails. A policy in shadow mode takes nothing from those below it.
//
// # Conditions
//
// CEL evaluates each condition with unknown values for what depends on the call, and once for each combination of the values
// that literals tell apart ([condition.Reading]). The match of the policy counts too: with the glob `prod` for env, env != 'prod'
// is true for no call. A text can be too long for a condition ([condition.MaxName]), so actor.id == 'a' || actor.id != 'a' is not
// always true: it can fail.
//
// # Monotonicity
//
// More risk must not be let through where less is stopped: a failing risk rule raises the mode, so an argument of the wrong type
// would get past require_approval_if: risk.mode == "review". [RiskNotMonotonic] is a policy that stops a call at one mode and
// score and not at a higher one, where a policy allows the call. Only modes and scores count that the risk rules can give
// together. The search takes sample names and every answer to the policy's other tests. A policy that may stop the
// call at the higher risk counts as stopping it. This can be intended, so it is a [Warning].
//
// # Arguments
//
// Arguments are compared with the compiled inputSchemas of all allowlisted tools that the match fits, in the closed world in which
// calls are judged. A use is reported only if it is wrong for each of these tools: no tool has an argument of this name, or none has
// it with this type. Nothing is reported if one of the schemas is unknown: the tool is not in the catalog, its server is
// down, or its schema was refused. Predicates of risk rules are compared in the same way.
//
// # Tools
//
// For each allowlisted tool that is not annotated read-only, lint follows a call in the configured environment through the
// policies and reports the first that allows it without an approval. A require_approval_if that can be true for the tool is
// trusted to ask. Annotations are the server's claims: a tool that lies is not found.
package lint
