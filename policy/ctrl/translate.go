package ctrl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"

	"pgfsm/policy/condition"
)

// What is known of the value of an expression.
type valueKind uint8

const (
	isDynamic valueKind = iota // an argument's: known when there is a call
	isBoolean
	isInteger
	isDouble
	isString
	isSequence
	isNone
)

var valueNames = [...]string{"an argument", "true or false", "a number", "a number", "a text", "a list", "None"}

func (k valueKind) isNumber() bool { return k == isInteger || k == isDouble }

// How close the parts of a CEL expression stick together.
const (
	choice = iota // ? :
	either        // ||
	both          // &&
	relation
	sum
	product
	unary
	atom
)

// A term is a piece of CEL.
type term struct {
	src     string
	prec    int
	kind    valueKind
	literal bool   // a number as it is written
	items   []term // of a list
}

// in writes t as an operand of something that sticks together as prec says.
func (t term) in(prec int) string {
	if t.prec < prec {
		return "(" + t.src + ")"
	}
	return t.src
}

func binary(a term, op string, b term, prec int, kind valueKind) term {
	left, right := a.in(prec), b.in(prec+1)
	if prec == relation {
		left = a.in(prec + 1)
	}
	return term{src: left + " " + op + " " + right, prec: prec, kind: kind}
}

// A translator writes one Python expression as CEL.
type translator struct {
	scope
	noted  []note
	failed []string // what ctrl cannot evaluate
	steps  int
}

type note struct{ code, problem, done string }

func (t *translator) note(code, problem, done string) {
	if n := (note{code, problem, done}); !slices.Contains(t.noted, n) {
		t.noted = append(t.noted, n)
	}
}

// failsThere notes something at which every evaluation of ctrl's ends.
func (t *translator) failsThere(what string) {
	if !slices.Contains(t.failed, what) {
		t.failed = append(t.failed, what)
	}
}

// condition translates an expression that says yes or no.
func (t *translator) condition(source string) (string, error) {
	e, err := parse(source)
	if err != nil {
		return "", err
	}
	b, err := t.truth(e)
	return b.src, err
}

// number translates an expression that gives a number.
func (t *translator) number(source string) (string, error) {
	e, err := parse(source)
	if err != nil {
		return "", err
	}
	n, err := t.double(e)
	return n.src, err
}

// truth translates an expression whose value only counts as true or false.
func (t *translator) truth(e syntax.Expr) (term, error) {
	switch v := bare(e).(type) {
	case *syntax.UnaryExpr:
		if v.Op == syntax.NOT {
			x, err := t.truth(v.X)
			return term{src: "!" + x.in(unary), prec: unary, kind: isBoolean}, err
		}
	case *syntax.BinaryExpr:
		if v.Op == syntax.AND || v.Op == syntax.OR {
			if t.isFallback(v) {
				break
			}
			return t.logic(v)
		}
	case *syntax.CondExpr:
		t.failsThere("if … else")
		parts, err := t.each([]syntax.Expr{v.Cond, v.True, v.False}, t.truth)
		if err != nil {
			return term{}, err
		}
		return conditional(parts[0], parts[1], parts[2]), nil
	}
	x, err := t.value(e)
	if err != nil {
		return term{}, err
	}
	switch x.kind {
	case isBoolean:
		return x, nil
	case isDouble:
		return binary(x, "!=", term{src: "0.0", prec: atom}, relation, isBoolean), nil
	case isInteger:
		return binary(x, "!=", term{src: "0", prec: atom}, relation, isBoolean), nil
	case isString:
		return binary(x, "!=", term{src: "''", prec: atom}, relation, isBoolean), nil
	case isDynamic:
		t.note(Truth, "in ctrl, whatever is not empty and not 0 counts as true",
			"it must be true or false here; anything else fails, which counts as more risk")
		return conditional(x, term{src: "true", prec: atom, kind: isBoolean}, term{src: "false", prec: atom}), nil
	}
	return term{}, fmt.Errorf("%s is no condition", valueNames[x.kind])
}

// conditional keeps the kind of a if it has one.
func conditional(c, a, b term) term {
	return term{src: c.in(either) + " ? " + a.in(either) + " : " + b.in(choice), prec: choice, kind: a.kind}
}

func (t *translator) logic(v *syntax.BinaryExpr) (term, error) {
	parts, err := t.each([]syntax.Expr{v.X, v.Y}, t.truth)
	if err != nil {
		return term{}, err
	}
	if v.Op == syntax.OR {
		return term{src: parts[0].in(either) + " || " + parts[1].in(either), prec: either, kind: isBoolean}, nil
	}
	return term{src: parts[0].in(both) + " && " + parts[1].in(both), prec: both, kind: isBoolean}, nil
}

func (t *translator) each(all []syntax.Expr, translate func(syntax.Expr) (term, error)) ([]term, error) {
	out := make([]term, len(all))
	for i, e := range all {
		var err error
		if out[i], err = translate(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxSteps bounds what is translated of one expression: a chain in a chain says what stands in its middle twice.
const maxSteps = 10_000

// value translates an expression as it is.
func (t *translator) value(e syntax.Expr) (term, error) {
	if t.steps++; t.steps > maxSteps {
		return term{}, errors.New("it has too many parts")
	}
	out, err := t.translate(e)
	if err == nil && len(out.src) > condition.MaxSource {
		err = fmt.Errorf("it becomes longer than %d bytes", condition.MaxSource)
	}
	return out, err
}

func (t *translator) translate(e syntax.Expr) (term, error) {
	if t.isScore(e) {
		return t.score(), nil
	}
	switch v := bare(e).(type) {
	case *syntax.Literal:
		return literal(v)
	case *syntax.Ident:
		return t.name(v.Name)
	case *chain:
		return t.chain(v)
	case *syntax.UnaryExpr:
		if v.Op == syntax.NOT {
			return t.truth(v)
		}
		return t.sign(v)
	case *syntax.BinaryExpr:
		return t.operation(v)
	case *syntax.CondExpr:
		return t.choose(v)
	case *syntax.ListExpr:
		return t.sequence(v.List)
	case *syntax.TupleExpr:
		return t.sequence(v.List)
	case *syntax.IndexExpr:
		return t.subscript(v)
	case *syntax.CallExpr:
		return t.call(v)
	case *syntax.DotExpr:
		return t.attribute(v)
	}
	return term{}, errors.New("this kind of expression is not translated")
}

func literal(v *syntax.Literal) (term, error) {
	switch n := v.Value.(type) {
	case string:
		if s, ok := text(v); ok {
			return term{src: quote(s), prec: atom, kind: isString}, nil
		}
	case int64:
		return term{src: strconv.FormatInt(n, 10), prec: atom, kind: isInteger, literal: true}, nil
	case float64:
		if !math.IsInf(n, 0) && !math.IsNaN(n) {
			return term{src: decimal(strconv.FormatFloat(n, 'g', -1, 64)), prec: atom, kind: isDouble, literal: true}, nil
		}
	}
	return term{}, fmt.Errorf("the literal %s is not translated", clip(v.Raw))
}

// decimal marks a number as a double.
func decimal(s string) string {
	if strings.ContainsAny(s, ".e") {
		return s
	}
	return s + ".0"
}

func (t *translator) sign(v *syntax.UnaryExpr) (term, error) {
	if v.X == nil || v.Op != syntax.MINUS && v.Op != syntax.PLUS {
		return term{}, fmt.Errorf("the operator %s is not translated", v.Op)
	}
	if x, ok := bare(v.X).(*syntax.Literal); ok && v.Op == syntax.MINUS {
		n, err := literal(x)
		if err != nil || !n.kind.isNumber() {
			return term{}, errors.Join(err, errors.New("only a number has a sign"))
		}
		return term{src: "-" + n.src, prec: unary, kind: n.kind, literal: true}, nil
	}
	n, err := t.double(v.X)
	if v.Op == syntax.MINUS {
		n = term{src: "-" + n.in(atom), prec: unary, kind: isDouble}
	}
	return n, err
}

func (t *translator) operation(v *syntax.BinaryExpr) (term, error) {
	switch {
	case v.Op == syntax.OR && t.isFallback(v):
		return t.fallback(v)
	case v.Op == syntax.AND || v.Op == syntax.OR:
		return t.logic(v)
	case isComparison(v.Op):
		return t.compare(v.X, v.Op, v.Y)
	}
	if v.Op == syntax.PLUS {
		if x, err := t.value(v.X); err == nil && x.kind == isString {
			y, err := t.value(v.Y)
			if err == nil && y.kind != isString {
				err = errors.New("only a text can be added to a text")
			}
			return binary(x, "+", y, sum, isString), err
		}
	}
	parts, err := t.each([]syntax.Expr{v.X, v.Y}, t.double)
	if err != nil {
		return term{}, err
	}
	switch v.Op {
	case syntax.PLUS, syntax.MINUS:
		return binary(parts[0], v.Op.String(), parts[1], sum, isDouble), nil
	case syntax.STAR:
		return binary(parts[0], "*", parts[1], product, isDouble), nil
	case syntax.SLASH, syntax.SLASHSLASH:
		t.note(Division, "in CEL, dividing whole numbers drops the fraction, and not in Python",
			"all numbers are written with decimals, so that nothing is dropped; a division by zero fails")
		out := binary(parts[0], "/", parts[1], product, isDouble)
		if v.Op == syntax.SLASHSLASH {
			t.failsThere("//")
			out = term{src: "math.floor(" + out.src + ")", prec: atom, kind: isDouble}
		}
		return out, nil
	}
	return term{}, fmt.Errorf("the operator %s is not translated", v.Op)
}

// double translates an expression that must be a number.
func (t *translator) double(e syntax.Expr) (term, error) {
	x, err := t.value(e)
	if err != nil {
		return term{}, err
	}
	return x.double()
}

// exact is the largest whole number up to which doubles have every one.
const exact = 1 << 53

func (t term) double() (term, error) {
	switch {
	case t.kind == isDouble:
		return t, nil
	case t.kind == isInteger && t.literal:
		n, err := strconv.ParseInt(t.src, 10, 64)
		if err != nil || n > exact || n < -exact {
			return term{}, fmt.Errorf("the number %s is too large to calculate with", t.src)
		}
		return term{src: t.src + ".0", prec: t.prec, kind: isDouble, literal: true}, nil
	case t.kind == isInteger:
		return term{src: "double(" + t.src + ")", prec: atom, kind: isDouble}, nil
	case t.kind == isDynamic: // double(x) would read a text, too, and math.greatest(x) a list; -x is for numbers only
		return term{src: "-double(-" + t.in(atom) + ")", prec: unary, kind: isDouble}, nil
	case t.kind == isBoolean:
		return conditional(t, term{src: "1.0", prec: atom, kind: isDouble}, term{src: "0.0", prec: atom}), nil
	}
	return term{}, fmt.Errorf("%s is no number", valueNames[t.kind])
}

// choose translates `a if c else b`.
func (t *translator) choose(v *syntax.CondExpr) (term, error) {
	t.failsThere("if … else")
	c, err := t.truth(v.Cond)
	if err != nil {
		return term{}, err
	}
	parts, err := t.each([]syntax.Expr{v.True, v.False}, t.value)
	if err != nil {
		return term{}, err
	}
	a, b := parts[0], parts[1]
	if a.kind == b.kind {
		return conditional(c, a, b), nil
	}
	if parts, err = t.each([]syntax.Expr{v.True, v.False}, t.double); err != nil {
		return term{}, errors.New("the two sides of if … else have different types")
	}
	return conditional(c, parts[0], parts[1]), nil
}

func (t *translator) sequence(list []syntax.Expr) (term, error) {
	items, err := t.each(list, t.value)
	sources := make([]string, len(items))
	for i, item := range items {
		sources[i] = item.src
	}
	return term{src: "[" + strings.Join(sources, ", ") + "]", prec: atom, kind: isSequence, items: items}, err
}

func clip(s string) string {
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
