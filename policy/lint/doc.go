// Package lint finds what is wrong with policies and risk rules before they judge a call. It is pure, and it looks at
// everything together: policies, risk rules, allowlist, roles, and what the servers say of their tools.
//
// [Codes] lists what it finds. What it reports as an [Error] holds for every call, or for every tool that the policy
// can be about; what it cannot tell for certain it does not report.
//
// # What is never reached
//
// A policy is unreachable if the policies above it decide every call that it matches: every server, tool and
// environment that there could be, not only those configured. That is exact for these, alone or several together:
//
//   - enforced policies without `when`, or whose `when` is true for every call;
//   - those that could deny or hold and whose `when` is true or fails for every call: they decide either way.
//
// Whether together they fit everything that the policy's globs fit is decided over all names, by automata, not by
// samples: what is reported is never reached, and what is not reported, as far as these policies go, is. The search is
// bounded (a million automaton steps for one policy, thirty for all). For a policy whose search exceeds the bounds only
// single policies that cover it are found, which is exact too, and not several together.
//
// A policy whose `when` demands what that of one policy above demands, spelt the same, and perhaps more (&&), is
// unreachable too. Beyond that no condition is compared with another: risk.score < 50 above and risk.score >= 50 below
// it cover everything between them, and that is not seen.
//
// Where the policy asks for a person, and one above that decides first allows, that is [ApprovalUnreachable]. It is
// reported in place of [PolicyUnreachable], not beside it. So is a policy that is still reached where its condition
// fails, but never asks; and a require_approval_if that is true only where deny is.
//
// A policy in shadow takes nothing from those below. It can itself be unreachable.
//
// # Conditions
//
// CEL evaluates each condition with everything open that depends on the call; where names are compared with literals
// alone, once for each combination of values that matter (condition.Reading). A name can be too long for a condition
// (condition.MaxName), so env == 'a' || env != 'a' is not true but "false for no call".
//
// # Arguments
//
// Arguments are held against the inputSchemas of all tools on the allowlist that the globs of server and tool fit, in
// the closed world in which calls are judged. A use is reported only if it is wrong for each of those tools: a name
// that none of them has, a type that the argument has in none. If of one of them nothing is known (it is not in the
// catalog, its server is down, its schema was refused), nothing is reported. Numbers are one type. Predicates of risk
// rules are held against the same.
//
// # Tools
//
// For each tool on the allowlist that is not annotated read-only, lint goes through the policies as a call in the
// configured environment would, and reports the first that allows it without a person. A require_approval_if that can
// be true for the tool is trusted. Annotations are the server's own words: a tool that lies is not found.
package lint
