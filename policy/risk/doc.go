// Package risk rates the risk of one call: one of the operator's modes and a score from 0 to
// [MaxScore]. docs/reference/policy-language.md is the manual of risk.yaml. Unknown counts as more
// risk, never as less. The zero [Model] gives every call the mode [Unknown] and [MaxScore].
//
// A call begins in the mode `initial` with the score 0. The score is never less than the baseline
// of the mode. Every rule that matches applies, in order: set_mode, then escalate, then score_expr.
// set_mode_by_score comes last and only raises.
//
// # Failures
//
// If an expression fails, its rule also escalates by one level, and the score counts as [MaxScore].
// No later rule sets a less severe mode or lowers the score. So an expression that fails never
// gives a lower score or mode than any value of the expression. Variables are evaluated once for
// each call, with the first expression that uses one.
//
// # Predicates
//
// Predicates are conditions (package condition). A rule whose predicates are unknown can only
// raise: the call gets the more severe of the modes without and with the rule, and the higher of
// the two scores. So a rule that only sets a less severe mode counts as not matched.
//
// # The budget
//
// Risk rules and policies share the budget of a decision ([condition.MaxDecision]). When it is
// spent, the evaluation stops: the call gets the most severe mode and [MaxScore], the last
// contribution is that of the rule, and Spent of the [Assessment] says that the call must be
// denied.
//
// # What is guaranteed
//
// An argument that is replaced by an unusable one never lowers mode or score: null, if no
// expression uses the argument, or a number that neither int64 nor a double holds, in place of
// anything but null. This holds for every model whose expressions do not decrease as `score`
// increases; an expression such as `1000.0 - score` breaks it.
package risk
