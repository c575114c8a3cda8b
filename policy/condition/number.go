package condition

import (
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"pgfsm/internal/visible"
)

// Number converts a JSON number to an int or a double. A number that neither can hold is an error
// value, because a condition must judge exactly the number that the tool receives.
func Number(literal string) ref.Val {
	if !strings.ContainsAny(literal, ".eE") {
		n, err := strconv.ParseInt(literal, 10, 64)
		if err != nil {
			return types.NewErr("the number %s is too large for int", clipNumber(literal))
		}
		return types.Int(n)
	}
	f, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil:
		return types.NewErr("the number %s is too large for double", clipNumber(literal))
	case f == 0 && !isDouble(literal, f):
		return types.NewErr("the number %s is too small for double", clipNumber(literal))
	case !isDouble(literal, f):
		return types.NewErr("the number %s has more digits than a double holds", clipNumber(literal))
	}
	return types.Double(f)
}

// isDouble reports whether f means the number of the literal. A double means the shortest decimal
// number that rounds to it: 0.1 is 0.1.
func isDouble(literal string, f float64) bool {
	digits, exp, ok := splitDecimal(literal)
	shortest, shortestExp, _ := splitDecimal(strconv.FormatFloat(f, 'e', -1, 64))
	return ok && digits == shortest && exp == shortestExp
}

// splitDecimal splits a number as JSON or Go writes it into its sign with its digits, without zeros
// at either end, and the power of ten of 0.DIGITS. Zero has no digits and no sign.
func splitDecimal(literal string) (digits string, exp int, ok bool) {
	unsigned, negative := strings.CutPrefix(literal, "-")
	mantissa, power := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(unsigned[i+1:]); err != nil && strings.Trim(unsigned[:i], "0.") != "" {
			return "", 0, false
		}
		mantissa = unsigned[:i]
	}

	integer, fraction, _ := strings.Cut(mantissa, ".")
	if integer+fraction == "" || strings.Trim(integer+fraction, "0123456789") != "" {
		return "", 0, false
	}

	// Zeros at either end move the point, and say nothing else.
	digits = strings.TrimLeft(integer+fraction, "0")
	exp = len(digits) - len(fraction) + power
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return "", 0, true
	}

	if negative {
		digits = "-" + digits
	}

	return digits, exp, true
}

// exactInt is the largest integer up to which a double holds every integer.
const exactInt = 1 << 53

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}

// checkComparable returns an error if CEL would round an integer to compare it with a double.
func checkComparable(a, b ref.Val) *types.Err {
	if _, ok := a.(types.Double); ok {
		a, b = b, a
	}
	d, ok := b.(types.Double)
	if !ok {
		return nil
	}
	n, isInt := a.(types.Int)
	u, isUint := a.(types.Uint)
	if isInt && (n > exactInt || n < -exactInt) || isUint && u > exactInt {
		return types.NewErr("an integer beyond 2^53 does not compare with a double: %v and %v", a.Value(),
			float64(d)).(*types.Err)
	}
	return nil
}

// toDouble implements double(v). It fails if a double does not hold v with all its digits.
func toDouble(_ meter, args operands) ref.Val {
	v := args[0]
	converted := v.ConvertToType(types.DoubleType)
	f, ok := converted.(types.Double)
	if !ok {
		return converted
	}
	if err := checkFinite(converted); err != nil {
		return err
	}
	written, _ := v.ConvertToType(types.StringType).(types.String)
	if _, isDoubled := v.(types.Double); !isDoubled && !isDouble(strings.TrimPrefix(string(written), "+"), float64(f)) {
		return types.NewErr("the number %s is none that a double holds with all its digits",
			clipNumber(string(written)))
	}
	return f
}

// checkFinite returns an error for NaN and infinities. Nothing is greater than NaN and nothing is
// less, so a denial of double(args.amount) > 1000.0 would not deny the text "NaN".
func checkFinite(v ref.Val) ref.Val {
	if d, ok := v.(types.Double); ok && (math.IsNaN(float64(d)) || math.IsInf(float64(d), 0)) {
		return types.NewErr("not a finite number: %v", float64(d))
	}
	return nil
}

// extremeOf implements math.greatest (sign 1) and math.least (sign -1) of two numbers, or of a list
// of numbers.
func extremeOf(sign types.Int) function {
	choose := func(m meter, a, b ref.Val) ref.Val {
		if !isNumber(a) || !isNumber(b) {
			return types.MaybeNoSuchOverloadErr(a)
		}
		switch order := compareValues(m, a, b); {
		case types.IsError(order):
			return order
		case order == -sign:
			return b
		}
		return a
	}
	return func(m meter, args operands) ref.Val {
		if args[1] != nil {
			return choose(m, args[0], args[1])
		}
		l, ok := args[0].(traits.Lister)
		switch {
		case !ok:
			return choose(m, args[0], args[0])
		case l.Size() == types.IntZero:
			return types.NewErr("there is no number to choose")
		}
		best := l.Get(types.IntZero)
		for i := range l.Size().(types.Int) {
			if best = choose(m, best, l.Get(i)); types.IsError(best) {
				break
			}
		}
		return best
	}
}

// checkLiterals rejects an expression with a number literal that CEL's parser rounded.
func checkLiterals(src string, a *ast.AST) *Error {
	lines := strings.Split(src, "\n")
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.LiteralKind)) {
		f, ok := e.AsLiteral().(types.Double)
		place := a.SourceInfo().GetStartLocation(e.ID())
		if !ok || place.Line() < 1 || place.Line() > len(lines) {
			continue
		}
		// CEL keeps no text of a literal, so it is read from the source, behind the sign.
		line := []rune(lines[place.Line()-1])
		literal := strings.TrimLeft(string(line[min(max(place.Column(), 0), len(line)):]), "- \t")
		literal = literal[:literalLength(literal)]
		if _, _, written := splitDecimal(literal); written && !isDouble(literal, math.Abs(float64(f))) {
			return errorAt(place, "the number has more digits than a double holds",
				"write "+strconv.FormatFloat(float64(f), 'g', -1, 64))
		}
	}
	return nil
}

// literalLength returns the number of bytes at the start of text that belong to a number.
func literalLength(text string) int {
	for i := range len(text) {
		c := text[i]
		sign := (c == '-' || c == '+') && i > 0 && (text[i-1] == 'e' || text[i-1] == 'E')
		if !sign && c != '.' && c != 'e' && c != 'E' && (c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// clipNumber truncates a number for a message.
func clipNumber(literal string) string { return visible.Cut(literal, 40, "…") }
