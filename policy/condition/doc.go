// Package condition reads, checks and evaluates the expressions of policies and of risk rules. They are a subset of CEL (https://cel.dev, the language
// definition of cel-spec). The subset gives the same answer for the same call on every machine, in bounded time.
//
// # What an expression may name
//
// [Names] lists every name with its type. Compile refuses any other name (risk.scor). Arguments are members of args, so arguments named env, risk or max
// are args.env, args.risk and args.max, and hide no other name.
//
//	risk.score >= 50 && env == 'prod'
//	has(args.amount) && args.amount > 1000
//	'deployer' in actor.roles && tool.startsWith('deploy_')
//	args.files.exists(f, f.path.matches('^/etc/'))
//	vars.rows / 1000.0 + math.least(score, 50.0)
//
// # Types
//
// The types of all names are known when the expression is compiled, except those of arguments. A condition must have the type bool, so args.force alone is
// refused; write args.force == true. Numbers of every type compare with each other by value. A text and a number have no order: args.amount > 1000 is an
// error for the argument "5000". A comparison with == is no error: args.amount == 1000 is false for "1000".
//
// No number is rounded. In args, an integer literal is an int, any other number the nearest double. A double means the shortest decimal number that rounds
// to it: 0.1 is 0.1. If neither type holds all digits of a number (100.000000000000001, 1e400, 12345678901234567890), using it is an error, also as a part
// of a compared list or map. A comparison (== != < <= > >=, in, math.greatest, …) of an integer beyond 2^53 with a double is an error, and so is
// double(x) of a number that a double cannot hold. Compile refuses an expression that contains such a number. No calculation gives NaN or an infinity; it
// is an error instead, and so is double('NaN').
//
// # Errors
//
// An expression fails with an error if an argument is missing or has another type, an index is out of range, a number overflows, or a divisor is zero.
// [Program.True] never returns true with an error. The caller decides what an error means: policies deny, risk rules escalate. As in CEL, `a || b` is true
// if one side is true, even if the other fails, and `a && b` is false if one side is false. has(args.x) is true if x is present. has(args.opts.force) fails
// if opts is missing or is no object.
//
// # The language
//
// CEL's standard definitions with its loops (all, exists, exists_one, map, filter), and the extension libraries of
// cel-go for strings ([StringsVersion]) and math ([MathVersion]). Refused are:
//
//   - a pattern of matches that is not a literal: Compile compiles each pattern once;
//   - a time zone that is not a literal offset or UTC: the meaning of a name (Europe/Berlin) depends on the machine;
//   - messages (Type{field: value});
//   - a loop over a map, and format, in an expression with a map literal: CEL iterates over such a map in random order (it iterates over objects in args
//     in the order of their names);
//   - a loop that uses a name in [Names] for its own variable.
//
// There is no clock and there are no random numbers; now is the recorded time of the assessment.
//
// # Calls before
//
// history.count("actor", "1h"), history.count_all(…) and history.sum("actor", "1d", "order.amount") return the number of earlier calls of the same tool,
// the number of all earlier calls, and the sum of an argument over earlier calls. They count the calls of the requester ("actor") or of the run's task
// ("task") within a window of 1s to 31d. Their arguments are literals, so [Program.Queries] knows them; the caller passes the results ([Input].History). A
// query without a result is an error, never 0.
//
// # Bounds
//
// An expression has at most [MaxSource] bytes and nests at most [MaxDepth] deep. A pattern of matches compiles to at most
// [MaxRegex] instructions.
//
// All expressions of one decision share a budget in their [Subject]: [MaxDecision] units for the decision, and [MaxTrial] for policies in shadow. cel-go
// counts the cost of an evaluation (cost model [CostModelVersion], with the additions of [meter]) and stops it at the budget. When the budget is spent,
// this and every later expression fail with [ErrSpent], and the caller must deny. Decoding the arguments costs no units; it happens once.
//
// # Speed
//
// An expression is compiled once. A [Subject] converts a name to a value when an expression first uses it, and caches the value: the arguments are decoded
// at most once.
package condition
