package ctrl

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

// chain translates a < b < c: both hold.
func (t *translator) chain(v *chain) (term, error) {
	first, err := t.truth(v.Expr)
	if err != nil {
		return term{}, err
	}
	second, err := t.compare(v.next.X, v.next.Op, v.next.Y)
	return term{src: first.in(both) + " && " + second.in(both), prec: both, kind: isBoolean}, err
}

// compare translates a comparison.
func (t *translator) compare(x syntax.Expr, op syntax.Token, y syntax.Expr) (term, error) {
	parts, err := t.each([]syntax.Expr{x, y}, t.value)
	if err != nil {
		return term{}, err
	}
	a, b := parts[0], parts[1]
	if t.isScore(x) && plainly(op, b) {
		a = t.rawScore()
	}
	if t.isScore(y) && plainly(turned[op], a) {
		b = t.rawScore()
	}
	if op == syntax.IN || op == syntax.NOT_IN {
		out, err := t.membership(a, b)
		if op == syntax.NOT_IN {
			out = term{src: "!" + out.in(unary), prec: unary, kind: isBoolean}
		}
		return out, err
	}
	equality := op == syntax.EQL || op == syntax.NEQ
	switch {
	case a.kind == isDynamic || b.kind == isDynamic:
		if !equality && (a.kind == isBoolean || b.kind == isBoolean || a.kind == isNone || b.kind == isNone) {
			return term{}, fmt.Errorf("%s and %s have no order", valueNames[a.kind], valueNames[b.kind])
		}
	case a.kind.isNumber() && b.kind.isNumber():
		if equality && a.kind != b.kind {
			if a, err = a.double(); err == nil {
				b, err = b.double()
			}
		}
	case a.kind != b.kind || a.kind == isSequence || !equality && a.kind != isString:
		return term{}, fmt.Errorf("%s is compared with %s", valueNames[a.kind], valueNames[b.kind])
	}
	return binary(a, op.String(), b, relation, isBoolean), err
}

var turned = map[syntax.Token]syntax.Token{
	syntax.LT: syntax.GT, syntax.GT: syntax.LT, syntax.LE: syntax.GE, syntax.GE: syntax.LE, syntax.EQL: syntax.EQL,
	syntax.NEQ: syntax.NEQ,
}

// ctrlTop is where scores end in ctrl.
const ctrlTop = 100

// plainly reports whether comparing a score with b gives the same for every score from ctrlTop on, so that it makes no
// difference that there are more of them here.
func plainly(op syntax.Token, b term) bool {
	n, err := strconv.ParseFloat(b.src, 64)
	if err != nil || !b.literal {
		return false
	}
	switch op {
	case syntax.GE, syntax.LT:
		return n <= ctrlTop
	case syntax.GT, syntax.LE, syntax.EQL, syntax.NEQ:
		return n < ctrlTop
	}
	return false
}

// membership translates a in b.
func (t *translator) membership(a, b term) (term, error) {
	switch {
	case b.kind == isSequence:
		return among(a, b)
	case b.kind == isString && (a.kind == isString || a.kind == isDynamic):
		t.textCase()
		return term{src: b.in(atom) + ".contains(" + a.src + ")", prec: atom, kind: isBoolean}, nil
	case b.kind == isDynamic:
		inList := binary(a, "in", b, relation, isBoolean)
		if a.kind != isString && a.kind != isDynamic {
			return inList, nil
		}
		t.textCase()
		isText := term{src: "type(" + b.src + ") == string", prec: relation}
		contains := term{src: b.in(atom) + ".contains(" + a.src + ")", prec: atom, kind: isBoolean}
		return conditional(isText, contains, inList), nil
	}
	return term{}, fmt.Errorf("%s is looked for in %s", valueNames[a.kind], valueNames[b.kind])
}

func (t *translator) textCase() {
	t.note(TextCase, "whether one text is in another depends on upper and lower case: 'ssn' is not in 'SSN'",
		"it is kept; compare lower case, or use contains in the rule's when, which finds both")
}

// among looks for a in a list that is written out.
func among(a, list term) (term, error) {
	sources := make([]string, len(list.items))
	for i, item := range list.items {
		switch {
		case a.kind.isNumber() && item.kind.isNumber() && (a.kind == isDouble || item.kind == isDouble):
			var err error
			if a, err = a.double(); err != nil {
				return term{}, err
			}
			if item, err = item.double(); err != nil {
				return term{}, err
			}
		case a.kind != isDynamic && item.kind != isDynamic && item.kind != a.kind:
			return term{}, fmt.Errorf("%s is looked for among what holds %s", valueNames[a.kind], valueNames[item.kind])
		}
		sources[i] = item.src
	}
	items := term{src: "[" + strings.Join(sources, ", ") + "]", prec: atom}
	return binary(a, "in", items, relation, isBoolean), nil
}
