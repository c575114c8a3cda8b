package condition

import (
	"errors"
	"math"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// A Reading analyses the possible results of an expression over all calls. It is for one goroutine at a time.
type Reading struct {
	env     *Env
	ast     *ast.AST
	program cel.Program
	domains map[int]domain // of the names that [Reading.Outcomes] goes through, by constant
	loops   int
}

// partial are the options of a program that is evaluated with unknown values, which [Reading.Outcomes] does many times.
var partial = []cel.ProgramOption{cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(MaxDecision / 100)}

// Read reads an expression of any type. The error is an [*Error].
func (e *Env) Read(src string) (r *Reading, err error) {
	defer unreadable(&err)
	checked, refused := e.compile(src)
	if refused != nil {
		return nil, refused
	}
	a := checked.NativeRep()
	if refused := check(src, a); refused != nil {
		return nil, refused
	}
	program, err := e.plan(a, partial...)
	if err != nil {
		return nil, at(nil, err.Error(), "")
	}
	r = &Reading{env: e, ast: a, program: program}
	r.domains = r.learnDomains()
	return r, nil
}

// Outcomes are the possible results of an expression. They are an upper bound: a result outside of them never happens, a result in them may never happen
// either.
type Outcomes uint8

// The outcomes. A number counts as CanTrue and CanFalse.
const (
	CanTrue Outcomes = 1 << iota
	CanFalse
	CanFail
	anything = CanTrue | CanFalse | CanFail
)

// maxCases is how many combinations of values [Reading.Outcomes] goes through; a loop counts as much as many cases.
const (
	maxCases     = 4096
	maxLoopCases = 16
	maxLoops     = 2
)

// Outcomes returns the possible results of the expression. CEL evaluates it with unknown values, once for each combination of the relevant values of names
// that are only compared with literals: env == 'a' && env == 'b' is never true, nor is risk.score > 1000.
//
// A nil call means all calls. Otherwise server, tool, env, annotations and pinned are those of the call, and the
// rest of it is open.
func (r *Reading) Outcomes(call *Input) Outcomes {
	if r.loops > maxLoops {
		return anything
	}
	c := cases{values: map[int]ref.Val{}}
	s := Subject{}
	if call != nil {
		s.in = call
		for _, n := range []int{nameServer, nameTool, nameEnv, nameReadOnly, nameDestructive, nameIdempotent,
			nameOpenWorld, namePinned} {
			c.values[n] = s.value(n)
		}
	}
	room := maxCases
	if r.loops > 0 {
		room = maxLoopCases
	}
	var open []int // the names to go through, in their order
	for n := range nameCount {
		d, ok := r.domains[n]
		if _, known := c.values[n]; !ok || known || len(d) > room {
			continue
		}
		open, room = append(open, n), room/len(d)
	}
	for n := range nameCount {
		if _, known := c.values[n]; !known && !slices.Contains(open, n) {
			c.unknown = append(c.unknown, cel.AttributePattern(names[n].Name))
		}
	}
	for _, v := range r.env.cel.Variables() {
		if _, ok := nameOf(v.Name()); !ok {
			c.unknown = append(c.unknown, cel.AttributePattern(v.Name()))
		}
	}
	return r.through(&c, open)
}

// through unites the outcomes for all values of the names that are left.
func (r *Reading) through(c *cases, left []int) (all Outcomes) {
	if len(left) == 0 {
		return r.outcome(c)
	}
	for _, v := range r.domains[left[0]] {
		c.values[left[0]] = v
		if all |= r.through(c, left[1:]); all == anything {
			return all
		}
	}
	return all
}

func (r *Reading) outcome(c *cases) (o Outcomes) {
	defer func() {
		if recover() != nil {
			o = anything
		}
	}()
	vars, err := cel.PartialVars(c, c.unknown...)
	if err != nil {
		return anything
	}
	v, _, err := r.program.Eval(vars)
	switch {
	case errors.As(err, new(interpreter.EvalCancelledError)):
		return anything // a real evaluation may cost more
	case err != nil:
		return CanFail
	case v == nil || types.IsUnknown(v):
		return anything
	case types.IsError(v):
		return CanFail
	case v == types.True:
		return CanTrue
	case v == types.False:
		return CanFalse
	}
	return CanTrue | CanFalse
}

// cases is one combination of values, as CEL asks for it.
type cases struct {
	values  map[int]ref.Val
	unknown []*cel.AttributePatternType
}

// Parent implements [cel.Activation].
func (*cases) Parent() cel.Activation { return nil }

// ResolveName implements [cel.Activation].
func (c *cases) ResolveName(full string) (any, bool) {
	n, ok := nameOf(full)
	if !ok {
		return nil, false
	}
	v, ok := c.values[n]
	return v, ok
}

// A domain holds one value for each class of values that an expression does not distinguish.
type domain []ref.Val

// learnDomains finds the names of which the expression distinguishes a few classes only: those with a bool, and those
// that are only compared with literals.
func (r *Reading) learnDomains() map[int]domain {
	found, uses, compared := map[int]domain{}, map[int]int{}, map[int]int{}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(r.ast), ast.AllMatcher()) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			r.loops++
		case ast.IdentKind:
			if n, ok := nameOf(e.AsIdent()); ok {
				uses[n]++
			}
		case ast.CallKind:
			if n, values := comparison(e.AsCall()); n >= 0 {
				compared[n]++
				for _, v := range values {
					found[n] = found[n].with(v)
				}
			}
		}
	}
	for n := range nameCount {
		switch kind := names[n].celType.Kind(); {
		case uses[n] == 0:
		case kind == types.BoolKind:
			found[n] = domain{types.True, types.False}
		case uses[n] != compared[n]:
			delete(found, n)
		case kind == types.StringKind:
			// Another text than all those; and a name that is too long is an error.
			found[n] = append(found[n], types.String(found[n].other()), nameText(string(make([]byte, MaxName+1))))
		}
	}
	return found
}

func (d domain) with(v ref.Val) domain {
	if slices.Contains(d, v) {
		return d
	}
	return append(d, v)
}

// other returns a text that is not in d.
func (d domain) other() string {
	text := "?"
	for slices.Contains(d, ref.Val(types.String(text))) {
		text += "?"
	}
	return text
}

// comparison returns the name that a call compares with literals, and the values that tell its answers apart; -1 if it
// is none.
func comparison(call ast.CallExpr) (name int, values []ref.Val) {
	args := call.Args()
	if len(args) != 2 {
		return -1, nil
	}
	switch call.FunctionName() {
	case operators.In:
		n, ok := plainName(args[0])
		if !ok || names[n].celType.Kind() != types.StringKind || args[1].Kind() != ast.ListKind {
			return -1, nil
		}
		for _, e := range args[1].AsList().Elements() {
			text, ok := literalText(e)
			if !ok {
				return -1, nil
			}
			values = append(values, types.String(text))
		}
		return n, values
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals:
	default:
		return -1, nil
	}
	n, ok := plainName(args[0])
	other := args[1]
	if !ok {
		if n, ok = plainName(args[1]); !ok {
			return -1, nil
		}
		other = args[0]
	}
	if other.Kind() != ast.LiteralKind {
		return -1, nil
	}
	if text, ok := other.AsLiteral().(types.String); ok && names[n].celType.Kind() == types.StringKind {
		if f := call.FunctionName(); f == operators.Equals || f == operators.NotEquals {
			return n, []ref.Val{text}
		}
		return -1, nil
	}
	if n == nameRiskScore {
		if values = around(other.AsLiteral()); values != nil {
			return n, values
		}
	}
	return -1, nil
}

// plainName returns the constant of an expression that is a name of [Names] and nothing else.
func plainName(e ast.Expr) (int, bool) {
	if e.Kind() != ast.IdentKind {
		return 0, false
	}
	return nameOf(e.AsIdent())
}

// around returns the scores that a comparison with a number can tell apart.
func around(literal ref.Val) []ref.Val {
	var f float64
	switch n := literal.(type) {
	case types.Int:
		f = float64(n)
	case types.Uint:
		f = float64(n)
	case types.Double:
		f = float64(n)
	default:
		return nil
	}
	const least, most = 0, 1000 // as [Names] says
	var values domain
	for _, point := range []float64{least, math.Floor(f) - 1, math.Floor(f), math.Ceil(f), math.Ceil(f) + 1, most} {
		values = values.with(types.Int(int64(min(max(point, least), most))))
	}
	return values
}
