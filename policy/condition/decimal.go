package condition

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A decimal is a number by the digits that it is written with, so that numbers compare without being rounded: it is
// 0.DIGITS times ten to the power of exp. Zero has no digits.
type decimal struct {
	negative bool
	digits   string // neither begins nor ends with a zero
	exp      int
}

// decimalOf reads a number as JSON or Go writes it: a sign, digits with at most one point among them, an exponent.
func decimalOf(literal string) (d decimal, ok bool) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, power := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(rest[i+1:]); err != nil {
			power = 0
			if strings.Trim(rest[:i], "0.") != "" {
				return decimal{}, false
			}
		}
		mantissa = rest[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" {
		return decimal{}, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	exp := len(digits) - len(fraction) + power
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return decimal{}, true
	}
	return decimal{negative, digits, exp}, true
}

// compare returns whether d is less than e (-1), equal (0) or greater (+1).
func (d decimal) compare(e decimal) int {
	sign := func(d decimal) int {
		switch {
		case d.digits == "":
			return 0
		case d.negative:
			return -1
		}
		return 1
	}
	if c := cmp.Compare(sign(d), sign(e)); c != 0 || d.digits == "" {
		return c
	}
	c := cmp.Or(cmp.Compare(d.exp, e.exp), strings.Compare(d.digits, e.digits))
	return c * sign(d)
}

// shortest is what a double says: the shortest number that it is the nearest double of. So 0.1 is 0.1.
func shortest(f float64) decimal {
	d, _ := decimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	return d
}

// A long is a number of the arguments that has more digits than a double holds. It compares exactly and is good for
// nothing else: to reckon with it would be to reckon with another number.
type long struct {
	decimal
	literal string
}

var (
	_ traits.Comparer   = (*long)(nil)
	_ traits.Adder      = (*long)(nil)
	_ traits.Subtractor = (*long)(nil)
	_ traits.Multiplier = (*long)(nil)
	_ traits.Divider    = (*long)(nil)
	_ traits.Negater    = (*long)(nil)
)

func (l *long) refuse() ref.Val {
	return types.NewErr("the number %s has more digits than a double holds", short(l.literal))
}

// Add implements [traits.Adder].
func (l *long) Add(ref.Val) ref.Val { return l.refuse() }

// Subtract implements [traits.Subtractor].
func (l *long) Subtract(ref.Val) ref.Val { return l.refuse() }

// Multiply implements [traits.Multiplier].
func (l *long) Multiply(ref.Val) ref.Val { return l.refuse() }

// Divide implements [traits.Divider].
func (l *long) Divide(ref.Val) ref.Val { return l.refuse() }

// Negate implements [traits.Negater].
func (l *long) Negate() ref.Val { return l.refuse() }

// Compare implements [traits.Comparer].
func (l *long) Compare(other ref.Val) ref.Val {
	order, ok := numbers(l, other)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(order)
}

// Equal implements [ref.Val].
func (l *long) Equal(other ref.Val) ref.Val {
	order, ok := numbers(l, other)
	return types.Bool(ok && order == 0)
}

// Type implements [ref.Val].
func (*long) Type() ref.Type { return types.DoubleType }

// Value implements [ref.Val].
func (l *long) Value() any { return l.literal }

// ConvertToType implements [ref.Val].
func (l *long) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return types.DoubleType
	}
	return l.refuse()
}

// ConvertToNative implements [ref.Val]. Nothing asks for it: what leaves a condition is a bool or a number.
func (l *long) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("the number %s does not convert to %v", short(l.literal), t)
}

// decimalVal returns the number that v is.
func decimalVal(v ref.Val) (d decimal, ok bool) {
	switch n := v.(type) {
	case types.Int:
		return decimalOf(strconv.FormatInt(int64(n), 10))
	case types.Uint:
		return decimalOf(strconv.FormatUint(uint64(n), 10))
	case types.Double:
		return decimalOf(strconv.FormatFloat(float64(n), 'e', -1, 64))
	case *long:
		return n.decimal, true
	}
	return decimal{}, false
}

// exactInt is up to where a double holds every integer.
const exactInt = 1 << 53

// numbers compares two numbers by value; ok is false if one of them is none.
func numbers(a, b ref.Val) (order int, ok bool) {
	switch x := a.(type) {
	case types.Int:
		switch y := b.(type) {
		case types.Int:
			return cmp.Compare(x, y), true
		case types.Double:
			if -exactInt <= x && x <= exactInt {
				return cmp.Compare(types.Double(x), y), true
			}
		}
	case types.Double:
		switch y := b.(type) {
		case types.Double:
			return cmp.Compare(x, y), true
		case types.Int:
			if -exactInt <= y && y <= exactInt {
				return cmp.Compare(x, types.Double(y)), true
			}
		}
	}
	d, isNumber := decimalVal(a)
	e, also := decimalVal(b)
	if !isNumber || !also {
		return 0, false
	}
	return d.compare(e), true
}
