// Package ctrl reads a bundle in the shape that agent-ctrl (github.com/MehulG/agent-ctrl) has, and makes of it what
// packages risk and rules read. It is pure: it takes a folder as an [fs.FS] and gives values and text.
//
// # What is read
//
//	policy.yaml    policies: [{id, match: {server, tool, env}, effect, reason, deny, require_approval_if}]
//	risk.yaml      risk: {mode: modes, modes: {NAME: {score}}, vars: {NAME: EXPR}, rules: […], set_mode_by_score}
//	servers.yaml   servers: [{name, transport: http, base_url}], defaults: {env}
//
// policy.yaml must be there. A file that is not of this shape is refused with every fault at once ([Faults]): a key
// that ctrl would pass over in silence, a key that stands twice, a value that YAML 1.1 and 1.2 read differently.
//
// # What cannot mean what its author hoped
//
// Everything else is taken over, and whatever means something else than it seems to is a [Finding]: a code of [Codes],
// the place, the problem, and what was done. The order of policies is kept, also where it is the problem; "pgfsm policy
// lint" refuses what [ApprovalShadowed] and [DenialShadowed] report, until somebody has moved it.
//
// # Expressions
//
// Expressions are Python there. They are parsed, never run, and written as CEL:
//
//	risk.mode in ['review'] and not risk.score < 80    risk.mode in ['review'] && !(risk.score < 80)
//	10 <= hour < 18                                    10 <= args.hour && args.hour < 18
//	args.get('amount', 0)                              (has(args.amount) ? args.amount : 0)
//	max(score, 70 + min(n or 0, 100) / 4)              math.greatest(score, 70.0 + math.least(vars.n, 100.0) / 4.0)
//	10 + 80 * (env == 'prod')                          10.0 + 80.0 * (env == 'prod' ? 1.0 : 0.0)
//
// Translated are and, or, not, True, False, None, comparisons and chains of them, in, not in, + - * / //, if … else,
// lists, max, min, abs, round, floor, ceil, sqrt, len, int, float, str, args.get, args[…], lower, startswith and
// endswith. What else there is, is refused and never guessed, names first of all. In the place of what was refused
// stands what is strictest: a deny or a require_approval_if that is always true; for the score of a rule one level up
// and [risk.MaxScore]; for a threshold a condition that is always true. A variable that was refused takes all
// expressions that use it with it.
//
// Some things differ on purpose:
//
//   - A bare name is a variable, one of server, tool, env and score, or else an argument, in this order, and is so
//     whatever the arguments of a call are called.
//   - An argument that is used and is missing, or has another type than is needed, makes the expression fail: one
//     level up, or denied. It is never 0. A default counts only where args.get names it, and only for an argument
//     that is not there. `x or d` counts also for null.
//   - true is not the number 1, and False not 0, where they come from arguments.
//   - `a and b` is false if one of both is, also where the other fails, and `a or b` true likewise, as in CEL.
//   - There a score ends at 100, and here at [risk.MaxScore]. Where a condition could tell, it is written
//     math.least(score, 100.0).
//
// A rule's predicates keep their ops, with the meaning that package risk gives them: contains looks at texts in any
// case and at lists; what is missing or of another type is unknown and counts as more risk. A rule for every tool can
// only mean the calls that have its arguments at all, and gets exists: true for each.
//
// [Result.RiskYAML] and [Result.PolicyYAML] write the files, each finding as a comment above what it is about.
package ctrl
