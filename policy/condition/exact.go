package condition

import (
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// ordered returns what CEL's order of two values is, of numbers exactly: CEL makes a double of an integer before it
// compares the two, and an integer beyond 2^53 another one.
func ordered(a, b ref.Val) ref.Val {
	if order, ok := numbers(a, b); ok {
		return types.Int(order)
	}
	if c, ok := a.(traits.Comparer); ok {
		return c.Compare(b)
	}
	return types.MaybeNoSuchOverloadErr(a)
}

// same returns whether two values are equal, all the way down, numbers by value. A number that could not be held is an
// error wherever it stands in what is compared.
func same(a, b ref.Val) ref.Val {
	if order, ok := numbers(a, b); ok {
		return types.Bool(order == 0)
	}
	switch x := a.(type) {
	case *types.Err:
		return x
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			return sameLists(x, y)
		}
	case *object:
		if y, ok := b.(traits.Mapper); ok {
			return sameMembers(x, y)
		}
	case traits.Mapper:
		switch y := b.(type) {
		case *object:
			return sameMembers(y, x)
		case traits.Mapper:
			return sameMaps(x, y)
		}
	}
	if e, ok := b.(*types.Err); ok {
		return e
	}
	return types.Equal(a, b)
}

// hole returns the number in a list that could not be held, if there is one.
func hole(l traits.Lister) *types.Err {
	if h, ok := l.(*holed); ok {
		return h.hole
	}
	return nil
}

func sameLists(a, b traits.Lister) ref.Val {
	for _, l := range [...]traits.Lister{a, b} {
		if h := hole(l); h != nil {
			return h
		}
	}
	size := a.Size().(types.Int)
	if size != b.Size() {
		return types.False
	}
	for i := range size {
		if eq := same(a.Get(i), b.Get(i)); eq != types.True {
			return eq
		}
	}
	return types.True
}

// sameMembers compares in the order of the object's names, so that there is one answer.
func sameMembers(o *object, m traits.Mapper) ref.Val {
	if o.Size() != m.Size() {
		return types.False
	}
	for _, one := range o.members {
		other, there := m.Find(one.name)
		if !there {
			return types.False
		}
		if eq := same(one.value, other); eq != types.True {
			return eq
		}
	}
	return types.True
}

// sameMaps compares maps that are written out. CEL walks them in no order, so all of it is compared: an error is an error
// wherever it comes.
func sameMaps(a, b traits.Mapper) ref.Val {
	if a.Size() != b.Size() {
		return types.False
	}
	answer := ref.Val(types.True)
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		eq := ref.Val(types.False)
		if other, there := b.Find(key); there {
			eq = same(a.Get(key), other)
		}
		e, failed := eq.(*types.Err)
		f, before := answer.(*types.Err)
		switch {
		case failed && (!before || e.Error() < f.Error()):
			answer = e
		case !failed && !before && eq != types.True:
			answer = types.False
		}
	}
	return answer
}

// within returns whether x is in a list, or is a key of a map.
func within(x, in ref.Val) ref.Val {
	l, ok := in.(traits.Lister)
	if !ok {
		if c, ok := in.(traits.Container); ok {
			return c.Contains(x)
		}
		return types.MaybeNoSuchOverloadErr(in)
	}
	if h := hole(l); h != nil {
		return h
	}
	for i := range l.Size().(types.Int) {
		if eq := same(x, l.Get(i)); eq != types.False {
			return eq
		}
	}
	return types.False
}

// An exactCall is a comparison that CEL would make with rounded numbers.
type exactCall struct {
	id     int64
	a, b   interpreter.InterpretableV2
	equals bool // an error of b counts also where a is not known
	judge  func(a, b ref.Val) ref.Val
}

// ID implements [interpreter.Interpretable].
func (c *exactCall) ID() int64 { return c.id }

// Eval implements [interpreter.Interpretable].
func (c *exactCall) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, c.Exec)
}

// Exec implements [interpreter.InterpretableV2].
func (c *exactCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	a := c.a.Exec(frame)
	if types.IsError(a) {
		return a
	}
	b := c.b.Exec(frame)
	unknown, open := a.(*types.Unknown)
	switch {
	case types.IsError(b) && (c.equals || !open):
		return b
	case open && types.IsUnknown(b):
		return types.MergeUnknowns(unknown, b.(*types.Unknown))
	case open:
		return a
	case types.IsUnknown(b):
		return b
	}
	return c.judge(a, b)
}

// is makes a question of an order.
func is(fits func(types.Int) bool) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		order := ordered(a, b)
		if n, ok := order.(types.Int); ok {
			return types.Bool(fits(n))
		}
		return order
	}
}

var comparisons = map[string]func(a, b ref.Val) ref.Val{
	operators.Less:          is(func(n types.Int) bool { return n < 0 }),
	operators.LessEquals:    is(func(n types.Int) bool { return n <= 0 }),
	operators.Greater:       is(func(n types.Int) bool { return n > 0 }),
	operators.GreaterEquals: is(func(n types.Int) bool { return n >= 0 }),
	operators.In:            within,
	operators.Equals:        same,
	operators.NotEquals:     differ,
	mathMax:                 func(a, b ref.Val) ref.Val { return choose(a, b, 1) },
	mathMin:                 func(a, b ref.Val) ref.Val { return choose(a, b, -1) },
}

func differ(a, b ref.Val) ref.Val {
	eq := same(a, b)
	if yes, ok := eq.(types.Bool); ok {
		return !yes
	}
	return eq
}

// What CEL calls math.greatest and math.least once they are read.
const (
	mathMax = "math.@max"
	mathMin = "math.@min"
)

// choose returns the number that is greater (or less) than the other, or the first of two equal ones.
func choose(a, b ref.Val, order int) ref.Val {
	n, ok := numbers(a, b)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(a)
	case n == -order:
		return b
	}
	return a
}

// exactly replaces what would compare or convert rounded numbers, and what asks about calls before.
func exactly(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	if asked := askedOf(call); asked != nil {
		return asked
	}
	function, args := call.Function(), call.Args()
	if len(args) == 1 {
		switch function {
		case "double":
			return finiteCall{exactOne{call, toDouble}}
		case mathMax:
			return exactOne{call, chooseOf(1)}
		case mathMin:
			return exactOne{call, chooseOf(-1)}
		}
	}
	judge := comparisons[function]
	if judge == nil || len(args) != 2 || function == operators.In && onlyTexts(args[1]) {
		return nil
	}
	equals := function == operators.Equals || function == operators.NotEquals
	return &exactCall{id: call.ID(), a: args[0], b: args[1], equals: equals, judge: judge}
}

// onlyTexts reports whether a list is written out and holds texts alone: CEL looks these up faster.
func onlyTexts(list interpreter.InterpretableV2) bool {
	made, ok := list.(interpreter.InterpretableConstructor)
	if !ok || made.Type() != types.ListType {
		return false
	}
	for _, one := range made.InitVals() {
		c, ok := one.(interpreter.InterpretableConst)
		if !ok || c.Value().Type() != types.StringType {
			return false
		}
	}
	return true
}

// An exactOne is a call about one value that CEL would answer with a rounded number.
type exactOne struct {
	interpreter.InterpretableCall
	judge func(ref.Val) ref.Val
}

// Eval implements [interpreter.Interpretable].
func (c exactOne) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, c.Exec)
}

// Exec implements [interpreter.InterpretableV2].
func (c exactOne) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.Args()[0].Exec(frame)
	if types.IsUnknownOrError(v) {
		return v
	}
	return c.judge(v)
}

// toDouble is double(v), which fails for what a double does not hold.
func toDouble(v ref.Val) ref.Val {
	converted := v.ConvertToType(types.DoubleType)
	f, ok := converted.(types.Double)
	if !ok || math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return converted
	}
	from, known := decimalVal(v)
	text, isText := v.(types.String)
	if isText {
		from, known = decimalOf(strings.TrimPrefix(string(text), "+"))
	}
	if !known || shortest(float64(f)).compare(from) != 0 {
		written, _ := v.ConvertToType(types.StringType).(types.String)
		return types.NewErr("the number %s is none that a double holds with all its digits", short(string(written)))
	}
	return f
}

// chooseOf is [choose] of all numbers in a list.
func chooseOf(order int) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		l, ok := v.(traits.Lister)
		switch {
		case !ok:
			return types.MaybeNoSuchOverloadErr(v)
		case l.Size() == types.IntZero:
			return types.NewErr("there is no number to choose")
		}
		best := l.Get(types.IntZero)
		for i := range l.Size().(types.Int) {
			if best = choose(best, l.Get(i), order); types.IsError(best) {
				break
			}
		}
		return best
	}
}

// rounded refuses an expression that writes a number out which would be rounded: CEL's parser has rounded it already.
func rounded(src string, a *ast.AST) *Error {
	lines := strings.Split(src, "\n")
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.LiteralKind)) {
		f, ok := e.AsLiteral().(types.Double)
		place := a.SourceInfo().GetStartLocation(e.ID())
		if !ok || place.Line() < 1 || place.Line() > len(lines) {
			continue
		}
		line := []rune(lines[place.Line()-1])
		literal := string(line[min(max(place.Column(), 0), len(line)):])
		literal = strings.TrimLeft(literal, "- \t")
		d, ok := decimalOf(literal[:literalLength(literal)])
		nearest := shortest(float64(f))
		nearest.negative = false
		if ok && d.compare(nearest) != 0 {
			return at(place, "the number has more digits than a double holds", "write "+strconv.FormatFloat(float64(f), 'g', -1, 64))
		}
	}
	return nil
}

// literalLength returns how many bytes of the number that text begins with belong to it.
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
