// Package risk rates the risk of one call: one of the operator's modes and a score from 0 to [MaxScore]. docs/reference/policy-language.md is the manual of
// risk.yaml.
//
// Unknown counts as more risk, never as less. The zero [Model] gives every call the mode [Unknown] and [MaxScore].
//
// # Modes and the score
//
// `modes` lists the modes, least severe first. Each mode has a baseline, the lowest score of a call in it; baselines do not decrease from one mode to the
// next. A call begins in the mode `initial`. The score begins at 0, and is never less than the baseline of the current mode.
//
// # Rules
//
// Every rule of `rules` that matches applies, in order. A rule matches if its globs match server, tool and env (package glob; default `*`) and all of its
// predicates hold of the arguments. It then does, in this order:
//
//   - `set_mode` sets the mode, upwards or downwards;
//   - `escalate` raises it by one level; at the top it stays there;
//   - `score_expr` sets the score to its value, rounded up and limited to 0 to [MaxScore].
//
// A rule does at least one of them. `score_expr` is CEL (package condition, [condition.RiskEnv]) over the call, the score so far as `score`, and `vars`.
// Arguments are members of `args`.
//
// # Failures
//
// An expression fails if it divides by zero, uses an argument that is missing or of another type, overflows, results in an infinity or NaN anywhere, or
// uses a variable that failed. Its rule then also escalates by one level, and the score counts as [MaxScore]. No later rule sets a less severe mode or
// lowers the score. So an expression that fails never gives a lower score or mode than any value of the expression. For optional arguments, write
// has(args.x) ? … : ….
//
// `vars` are named expressions, in order; a later one may use earlier ones as vars.NAME. They are evaluated once for each call, with the first expression
// that uses a variable; `score` in them is the baseline of the initial mode. If a variable fails, every expression that uses it fails. An unused variable
// has no effect.
//
// As in CEL, true || failure is true, and false && failure is false.
//
// # Predicates
//
// A [Predicate] tests one place in the arguments. A path that begins with "/" is a JSON pointer (RFC 6901) into objects and, by index, lists; any other
// path is the name of an argument, even with dots. The answer is yes, no or unknown. Several predicates together are no if one is no, and otherwise unknown
// if one is unknown.
//
//	op                value          yes if the argument
//	eq, ne            scalar         is, is not, this very text, number, true or false
//	gt, gte, lt, lte  number         is a number that is larger, …
//	in                scalars        equals one of them
//	contains          text           is a text with this text in it, or a list with an element that is this text; in
//	                                 both, upper and lower case are one (Unicode simple folding)
//	contains          other scalar   is a list with an element that equals it
//	matches           text           is a text in which this pattern (RE2) matches somewhere
//	exists            true or false  is there, is not there
//
// A missing argument is unknown to every op except exists, whose answer is no (yes for exists: false). So with `exists: true` and another predicate on the
// same path, a rule does not match without the argument. null is unknown to every op, including exists, because a tool may treat null as absent or as a
// value. A path through null or a scalar, or into a list without an index, is unknown. An argument of another type than the op or the value requires is
// unknown: a text to gt, a number to eq "5", an object to contains. To in, an argument is unknown if no element of the value has its type. contains is yes
// if an element of a list equals the value. Otherwise it is unknown if an element has another type than the value. An empty list contains nothing, and that
// is known. Arguments that are not one strict JSON object, that nest deeper than [condition.MaxArgsDepth], or that are larger than [condition.MaxArgs], are
// unknown throughout.
//
// Numbers are exact as in conditions: 1 equals 1.0 and 100e-2. A number is unknown if neither int64 nor a double holds all its digits, and so is a
// comparison of an integer beyond 2^53 with a double. Texts are compared by code points, without normalization; only contains ignores letter case.
//
// # Unknown predicates
//
// A rule whose predicates are unknown can only raise: the call gets the more severe of the modes without and with the rule, and the higher of the two
// scores. So a rule that only sets a less severe mode counts as not matched. The trace records the rule and what was unknown.
//
// # set_mode_by_score
//
// After all rules, the first entry of `set_mode_by_score` whose condition (CEL over `score` only) is true names a mode. If that mode is more severe than
// the call's, the call gets it, with its baseline, and the list is evaluated again with the new score. The list never makes a mode less severe. Compile
// evaluates the conditions for every score, and refuses a condition that fails, an entry that is never the first true one, and a list that gives a less
// severe mode to a higher score (no entry counts as the least severe). Lists and maps are not allowed in the conditions.
//
// # The budget
//
// A decision has a budget ([condition.MaxDecision]), which risk rules and policies share. An expression is charged while it runs; a predicate is charged
// before it runs, by the size of the value that it tests. When the budget is spent, the evaluation stops: the call gets the most severe mode and
// [MaxScore], the last contribution is that of the rule, and Spent of the [Assessment] says that the call must be denied.
//
// # The outcome
//
// An [Assessment] holds mode, score, and one [Contribution] for each rule that matched or was unknown, in the order
// of the rules, and then for each time that set_mode_by_score raised the mode (under the name [ByScore]).
// [Assessment.Risk] is what policies see.
//
// # What is guaranteed
//
// An argument that is replaced by an unusable one never lowers mode or score: null, if no expression uses the argument, or a number that neither int64 nor
// a double holds, in place of anything but null. This holds for every model whose expressions do not decrease as `score` increases; an expression such as
// `1000.0 - score` breaks it.
package risk
