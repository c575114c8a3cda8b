// Package condition reads, checks and evaluates the expressions of policies and of risk rules. They
// are a subset of CEL (https://cel.dev), which gives the same answer for the same call on every
// machine, in bounded time. docs/reference/policy-language.md is the manual.
//
// [Names] lists every name with its type. Compile refuses any other name (risk.scor). Arguments are
// members of args, so arguments named env, risk or max are args.env, args.risk and args.max, and
// hide no other name.
//
// # Numbers
//
// No number is rounded. In args, an integer literal is an int, any other number the nearest double.
// A double means the shortest decimal number that rounds to it: 0.1 is 0.1. If neither type holds
// all digits of a number, using it is an error, also as a part of a compared list or map. A
// comparison of an integer beyond 2^53 with a double is an error. No calculation gives NaN or an
// infinity; it is an error instead.
//
// # Errors
//
// An expression fails with an error if an argument is missing or has another type, an index is out
// of range, a number overflows, or a divisor is zero. [Program.True] never returns true with an
// error. The caller decides what an error means: policies deny, risk rules escalate. As in CEL, `a
// || b` is true if one side is true, even if the other fails, and `a && b` is false if one side is
// false.
//
// # What is refused
//
// Expressions have CEL's standard definitions with its loops, and the libraries strings
// ([StringsVersion]) and math ([MathVersion]). Refused are patterns and time zones that are not
// literals, messages, map literals (CEL iterates over them in random order), the functions
// [omitted], and a loop whose variable has the name of something in [Names]. There is no clock and
// there are no random numbers; now is the recorded time of the assessment.
//
// # Bounds
//
// An expression has at most [MaxSource] bytes and nests at most [MaxDepth] deep. All expressions of
// one decision share a budget in their [Subject]: [MaxDecision] units for the decision, and
// [MaxTrial] for policies in shadow. cel-go counts the cost of an evaluation (cost model
// [CostModelVersion], with the additions of [meter]) and stops it at the budget. When the budget is
// spent, this and every later expression fail with [ErrSpent], and the caller must deny. Decoding
// the arguments costs no units; it happens once.
package condition
