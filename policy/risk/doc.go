// Package risk says how risky one call is: a mode on the operator's ladder and a score from 0 to [MaxScore]. This
// comment is the manual of risk.yaml.
//
// One rule is above all: what is unknown counts as more risk, never as less. A call whose risk is unknown is as risky as can
// be; the zero [Model] gives every call the mode [Unknown] and [MaxScore].
//
// # Modes and the score
//
// `modes` is a ladder, least strict first. Each mode has a baseline, the least score of a call in it; baselines do not
// fall from one mode to the next. `initial` is the mode that a call begins in. The score begins at 0, and is never
// less than the baseline of the current mode: a reader of the score, an expression or the outcome, gets the larger of the
// two.
//
// # Rules
//
// `rules` are applied in order, every one that matches. A rule matches if its globs match server, tool and env
// (package glob; nothing written is `*`) and all of its predicates hold of the arguments. It then does, in this
// order:
//
//   - `set_mode` sets the mode, upwards or downwards;
//   - `escalate` raises it by one level; at the top it stays there;
//   - `score_expr` sets the score to its value, rounded up and brought into 0 to [MaxScore].
//
// A rule does at least one of them. `score_expr` is CEL (package condition, [condition.RiskEnv]) over the call, the
// score so far as `score`, and `vars`. Arguments are members of `args` and nothing else: one that is named env, max or
// min is `args.env`, `args.max`, `args.min`, and changes no other name.
//
// # Failures
//
// An expression fails if it divides by zero, uses an argument that is missing or of another type, overflows, comes to
// an infinity or NaN anywhere, or uses a variable that failed. Its rule then escalates by one level, in addition to
// what it does anyway, and the score, which is not known, counts as [MaxScore]. What failed stays: no later rule sets
// a mode below the one that the failure led to, and none lowers the score. So making an expression fail never gives a
// lower score, nor with it a lower mode, than any value that it could have had. (Whoever expects an argument to be
// missing writes has(args.x) ? … : ….)
//
// `vars` are named expressions, in order; a later one may use earlier ones as vars.NAME. They are computed when the
// first expression that speaks of variables is, once for each call; `score` in them is the baseline of the initial
// mode. One that fails is never 0: every expression that uses it fails. One that nobody uses has no consequence.
//
// CEL's own rule holds: true || failure is true, and false && failure is false, since nothing that the failure hides
// could change them.
//
// # Predicates
//
// A [Predicate] asks one thing of one place in the arguments. A path that begins with "/" is a JSON pointer (RFC
// 6901) through objects and, by index, lists; any other is the name of an argument, dots and all. The answer is yes,
// no or unknown. With several predicates, one no is a no; without it, one unknown is an unknown.
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
// For each op an argument that is missing is unknown, except for exists, to which it is a plain no (yes for false).
// So `exists: true` beside another predicate on the same path says that a missing argument does not matter. null is
// unknown to every op, exists too: a tool may take it for absent or for a value. So is a place that is reached
// through null or a scalar, or through a list by something that is no index. An argument of another type than the op
// or the value asks for is unknown: a text to gt, a number to eq "5", an object to contains. To in, it is unknown if
// no element of the value has its type. An element of a list that is not of the value's type is unknown to contains;
// the answer is yes if another one equals, unknown if none does. An empty list contains nothing, and that is known.
// Arguments that are not one strict JSON object, that nest deeper than [condition.MaxArgsDepth], or that are larger
// than [condition.MaxArgs], are unknown throughout.
//
// Numbers are those of conditions: exact, and 1 equals 1.0 and 100e-2. A number that neither int64 nor a double holds with
// all its digits is unknown, and so is a comparison of an integer beyond 2^53 with a double. Texts are compared by code
// points, without normalization and, but for contains, with their case.
//
// # What unknown does
//
// A rule whose predicates come to unknown is applied as far as it raises: of the mode without it and the mode with it
// the more severe one holds, and of the scores the higher. So a rule that raises counts as matched; one that only
// sets a less strict mode counts as not matched. Either way it is recorded, with what was unknown.
//
// # set_mode_by_score
//
// When all rules are through, the first entry of `set_mode_by_score` whose condition (CEL over `score` alone) is true
// names a mode. If that is more severe than the mode so far, it holds, with its baseline, and the list is asked again
// with the new score. It never makes a mode less strict. The conditions are computed for every score there is when the
// model is compiled, and never again. So it is known, and refused, if one fails; if an entry is never the first that
// is true; or if a higher score would give a less strict mode than a lower one, none counting as the least strict. Lists and
// maps have no place in them.
//
// # The budget
//
// A decision has a budget ([condition.MaxDecision]), which risk rules and policies share. An expression is charged while it
// is evaluated, a predicate before, by the size of the value that it asks about. When the budget is spent, nothing more is
// evaluated: the call has the most severe mode and [MaxScore], the last contribution is that of the rule, and Spent of the
// [Assessment] says that the call must be denied.
//
// # The outcome
//
// An [Assessment] holds mode, score, and one [Contribution] for each rule that matched or was unknown, in the order
// of the rules, and then for each time that set_mode_by_score raised the mode (under the name [ByScore]).
// [Assessment.Risk] is what policies see.
//
// # What is guaranteed
//
// Replacing an argument by one that is unusable never lowers mode or score: by null, if no expression looks at it;
// or, whatever the expressions, by a number beyond all bounds in the place of anything but null. This holds of every
// model whose expressions do not fall as `score` rises. A model that takes an expression such as `1000.0 - score` has
// asked for something else.
package risk
