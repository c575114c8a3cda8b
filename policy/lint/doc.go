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
// Policies with conditions count, too, together with those without: conditions are taken apart at &&, ||, ! and ? :,
// down to tests. Of server, tool, env, actor.id and risk.mode (==, !=, in, startsWith, endsWith, contains), of risk.score
// (compared with a number), of pinned and of the hints it is known how one answer bears on another, and how the globs
// bear on all of them: env == 'a' above the glob `a`, pinned and !pinned above everything, risk.score < 50 and
// risk.score >= 50. Every other test can be true, false or fail, the same test (as CEL parses it) with the same answer
// everywhere, and different tests independent of each other. So what is reported is never reached; what depends on what
// an argument is (args.n > 5 above args.n > 9) is not seen. That search is bounded, too (64 policies above, 16,384 steps
// for one policy); beyond the bounds a policy counts as reached. Names of server, tool and env count as no longer than
// condition.MaxName, as in every configuration. A budget that is spent (package rules) is left aside.
//
// Where the policy asks for a person, and one above that decides first allows, that is [ApprovalUnreachable]. It is
// reported in place of [PolicyUnreachable], not beside it. So is a policy that is still reached where its condition
// fails, but never asks; and a require_approval_if that is true only where deny is, or denies.
//
// A policy in shadow takes nothing from those below. It can itself be unreachable.
//
// # Conditions
//
// CEL evaluates each condition with everything open that depends on the call; where names are compared with literals
// alone, once for each combination of values that matter (condition.Reading). A name can be too long for a condition
// (condition.MaxName), so risk.mode == 'a' || risk.mode != 'a' is not true but "false for no call". What the globs of the
// policy fit is taken into account, as above: with the glob `prod` for env, env != 'prod' is true for no call.
//
// # More risk
//
// [MoreRiskIsMilder] is a policy that stops a call at one risk and, where mode or score is higher and all else is as
// before, does not, while a policy allows the call. That is a hole, since an expression of the risk rules that fails
// raises the mode: require_approval_if: risk.mode == "review" is got past with an argument of the wrong type. Only risks
// count that there can be: a score is at least the baseline of its mode, and set_mode_by_score holds. A policy that asks
// for the risk and could stop the call at the higher risk is taken to do so, so that deny: risk.mode == "danger" above
// is enough. CEL evaluates each test that asks for mode or score at every mode and every score, with all else unknown; a
// test with a loop is unknown. Of tests that do not ask for the risk, any answers are taken together, so this can be
// meant: a [Warning].
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
