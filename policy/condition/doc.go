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
// In args, an integer literal is an int, any other number the nearest double, which stands for the shortest number that it
// is nearest to: 0.1 is 0.1. Comparisons (== != < <= > >=, in, math.greatest, math.least) are exact, also between integers
// beyond 2^53 and doubles, and also for a number of the arguments with more digits than a double holds
// (100.000000000000001). Such a number compares and does nothing else: to calculate with it or to convert it is an error. So
// is double(x) of an integer or of a text that no double holds with all its digits, and an expression that writes such a
// number out is refused. A number that does not fit at all (an integer beyond 64 bits, 1e400, 1e-400) is an error wherever
// it is used, also as a part of a list or map that is compared: a condition never judges another number than the tool
// receives. No calculation gives NaN or an infinity; it is an error instead, and so is double('NaN').
//
// # Errors
//
// An expression that cannot be judged has an error and no answer: an argument that is missing, of another type, an
// index out of range, an overflow, a division by zero. [Program.True] never says true beside an error. What an error
// means is for the caller to say; policies deny, risk rules escalate. As in CEL, `a || b` is true if one of both is,
// even where the other cannot be judged, and `a && b` is false if one of both is. has(args.x) asks whether x is there;
// it is itself an error where something on the way to x is missing, or is no object: has(args.opts.force) is one where opts is
// a text.
//
// # What is left of CEL
//
// Operators, conversions, the functions of the standard library, math.* (math.greatest, math.least, …), the method
// lowerAscii() of text, and the loops all, exists, exists_one, map and filter. Refused are:
//
//   - a pattern of matches that is not written out: it is compiled once, when the expression is read;
//   - a time zone that is not written out as an offset or UTC: what a name (Europe/Berlin) means is up to the machine;
//   - messages (Type{field: value});
//   - a loop over a map that is, or could be, written out in the expression: CEL walks it in another order each time
//     (objects in args are walked in the order of their names);
//   - a loop that calls its element like something in [Names].
//
// There is no clock and there are no random numbers; now is when the call was assessed, as recorded.
//
// # Calls before
//
// history.count("actor", "1h"), history.count_all(…) and history.sum("actor", "1d", "order.amount") ask about the calls before
// the one that is judged: how many there were of the same tool, or of any, and what an argument of them comes to together;
// of who asks ("actor") or of its task ("task"), within a window of 1s to 31d. What they ask is written out, so that it is known
// when the expression is read ([Program.Queries]); whoever evaluates it gives the answers ([Input].History). A question
// without an answer is an error, and never 0.
//
// # Bounds
//
// An expression has at most [MaxSource] bytes, nests at most [MaxDepth] deep, and may cost at most [MaxCost] units. The
// cost is reckoned when it is read, for arguments of [AnyInput] bytes; no step is counted while it runs. A loop over
// arguments, and a loop in it over a part of the same element, cost as much as there are parts. A loop in a loop over
// something else costs one times the other, and is refused if both are arguments.
// A pattern of matches compiles to at most [MaxRegex] instructions, and the longer the text, the fewer fit the cost.
//
// All that is evaluated for one decision has a budget together, which its [Subject] holds: [MaxDecision] units for what
// decides, and [MaxTrial] for what is on trial. An expression is charged before it is evaluated: its cost for names,
// arguments, roles and rules of the sizes that this call has, beyond [AnyInput] in proportion. If the budget does not
// hold that, it is spent: neither this expression nor any later one is evaluated, and their error is [ErrSpent]. Whoever
// decides must deny then, as nothing is known of the rest. To decode the arguments is not charged; it happens once.
//
// # Speed
//
// An expression is read once. A [Subject] turns what is named into values when it is first named, and keeps them for
// all expressions after it: the arguments are decoded once, or not at all.
package condition
