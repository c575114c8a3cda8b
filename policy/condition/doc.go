// Package condition reads, checks and judges the expressions of policies and of risk rules. They are CEL
// (https://cel.dev, the language definition of cel-spec), with less in it than CEL has: what is left gives one answer
// for one call, on every machine, every time, and in bounded time.
//
// # What an expression may name
//
// [Names] lists every name with its type. Nothing else is there: a name that is misspelt (risk.scor) is refused when
// the expression is read. Arguments live under args and nowhere else, so an argument that is called env, risk or max is
// args.env, args.risk or args.max and takes no name away.
//
//	risk.score >= 50 && env == 'prod'
//	has(args.amount) && args.amount > 1000
//	'deployer' in actor.roles && tool.startsWith('deploy_')
//	args.files.exists(f, f.path.matches('^/etc/'))
//	vars.rows / 1000.0 + math.least(score, 50.0)
//
// # Types
//
// What an expression names has a type that is known when it is read, except what is under args: its type is known when
// there is a call. A condition must have the type bool, so args.force alone is refused; write args.force == true.
// Numbers of every type compare with each other by value. Text and numbers have no order: args.amount > 1000 is an error
// for the argument "5000". They are unequal, though, and that is no error: args.amount == 1000 is false for "1000".
//
// No number is rounded. In args, an integer literal is an int, any other number the nearest double, which stands for the
// shortest number that it is nearest to: 0.1 is 0.1. A number that neither holds with all its digits
// (100.000000000000001, 1e400, 12345678901234567890) is an error wherever it is used, also as a part of a list or map that
// is compared. So is a comparison (== != < <= > >=, in, sets, math.greatest, …) of an integer beyond 2^53 with a double,
// and double(x) of what a double does not hold. An expression that writes such a number out is refused. No calculation gives
// NaN or an infinity; it is an error instead, and so is double('NaN').
//
// # Errors
//
// An expression that cannot be judged has an error and no answer: an argument that is missing, of another type, an
// index out of range, an overflow, a division by zero. [Program.True] never says true beside an error. What an error
// means is for the caller to say; policies deny, risk rules escalate. As in CEL, `a || b` is true if one of both is,
// even where the other cannot be judged, and `a && b` is false if one of both is. has(args.x) asks whether x is there;
// it is itself an error if a part of the path to x is missing, or is no object: has(args.opts.force) is one if opts is a
// text.
//
// # The language
//
// CEL's standard definitions with its loops (all, exists, exists_one, map, filter), and the extension libraries of
// cel-go in fixed versions: strings ([StringsVersion]), lists, sets, math, optionals and bindings. Refused are:
//
//   - a pattern of matches that is not written out: it is compiled once, when the expression is read;
//   - a time zone that is not written out as an offset or UTC: what a name (Europe/Berlin) means is up to the machine;
//   - messages (Type{field: value});
//   - a loop over a map, and format, where a map is written out in the expression: CEL walks such a map in another order
//     each time (objects in args are walked in the order of their names);
//   - a loop or a binding that uses a name in [Names] for its own variable.
//
// There is no clock and there are no random numbers; now is when the call was assessed, as recorded.
//
// # Calls before
//
// history.count("actor", "1h"), history.count_all(…) and history.sum("actor", "1d", "order.amount") ask about the calls before
// the one that is judged: how many there were of the same tool, or of any, and what an argument of them comes to together;
// of who asks ("actor") or of its task ("task"), within a window of 1s to 31d. What they ask is written out, so that it is known
// when the expression is read ([Program.Queries]); the caller gives the answers ([Input].History). A question
// without an answer is an error, and never 0.
//
// # Bounds
//
// An expression has at most [MaxSource] bytes and nests at most [MaxDepth] deep. A pattern of matches compiles to at most
// [MaxRegex] instructions.
//
// All that is evaluated for one decision has a budget together, which its [Subject] holds: [MaxDecision] units for what
// decides, and [MaxTrial] for policies on trial. cel-go counts what an evaluation costs (cost model [CostModelVersion], and
// what a [meter] adds), and stops it at the budget. Then the budget is spent: neither this expression nor any later one has
// an answer, and their error is [ErrSpent]. The caller must deny then. To decode the arguments costs nothing; it happens once.
//
// # Speed
//
// An expression is read once. A [Subject] converts what an expression names to values when it is first named, and keeps
// them for all expressions after it: the arguments are decoded once, or not at all.
package condition
