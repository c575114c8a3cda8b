package condition

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Bounds of what an expression may cost. A unit is about one small step of the evaluation, some 20 nanoseconds.
const (
	MaxCost  = 10_000_000 // units
	AnyInput = 65536      // the size that the arguments, the roles and the rules are reckoned with
	MaxName  = 1024       // bytes of server, tool, env, actor.id and risk.mode; a use of a longer one is an error
	perByte  = 0.1        // units to look at one byte of text
	perRegex = 0.5        // units for one instruction of a pattern at one byte of text
)

// A bound is a sum: a number; for each of the things that have a size in every call (names, arguments, …: [sizeName] and
// on) a number for each unit of it; and for each loop that is open a number for each unit of size of the element that
// the loop is at. The size of a value is its number of values and of bytes of text, all the way down.
//
// What is gained over plain numbers: the elements of a list are together not larger than the list. So a loop over files
// with a loop over each file's tags in it costs as much as there are tags, not the largest number of files times the
// largest number of tags. CEL's own estimate multiplies, and would refuse most useful loops or let far too much pass.
type bound []float64

func fixed(n float64) bound { return bound{n} }

// element is the size of what loop number i is at. The first [sizeCount] are no loops but what every call has.
func element(i int) bound {
	b := make(bound, i+2)
	b[i+1] = 1
	return b
}

func (b bound) plus(c bound) bound {
	if len(b) < len(c) {
		b, c = c, b
	}
	sum := slices.Clone(b)
	for i, n := range c {
		sum[i] += n
	}
	return sum
}

func (b bound) times(n float64) bound {
	out := slices.Clone(b)
	for i := range out {
		out[i] *= n
	}
	return out
}

// or is not less than either.
func (b bound) or(c bound) bound {
	if len(b) < len(c) {
		b, c = c, b
	}
	out := slices.Clone(b)
	for i, n := range c {
		out[i] = max(out[i], n)
	}
	return out
}

// A meter reckons the cost of one expression.
type meter struct {
	ast   *ast.AST
	loops []float64 // the most that each size of a call can be, and the size of an element of each open loop
	scope []local   // the innermost last
}

// A local is a name that a loop declares.
type local struct {
	name string
	size bound
	over string // what the loop goes over, if it is a chain of names; see [meter.chain]
}

// cost returns the most that an expression costs, by the sizes of a call and where these are at their most.
func cost(a *ast.AST) (bySize bound, most float64) {
	m := &meter{ast: a, loops: slices.Clone(mostSizes[:])}
	c, _ := m.expr(a.Expr())
	return c, m.most(c)
}

// most returns the largest value of b.
func (m *meter) most(b bound) float64 {
	n := b[0]
	for i, factor := range b[1:] {
		n += float64(factor * m.loops[i]) // converted, so that no machine fuses the two and rounds once
	}
	return n
}

// less returns the one of two bounds that is smaller at its most.
func (m *meter) less(b, c bound) bound {
	if m.most(c) < m.most(b) {
		return c
	}
	return b
}

// product multiplies. A product of two elements is no sum any more: the element of the outer loop is taken at its most,
// so that the inner one can still be added up.
func (m *meter) product(b, c bound) bound {
	out := c.times(b[0])
	for i, n := range b[1:] {
		if n == 0 {
			continue
		}
		for k, factor := range c {
			var term bound
			switch inner := k - 1; {
			case k == 0:
				term = element(i).times(n * factor)
			case inner > i:
				term = element(inner).times(n * factor * m.loops[i])
			default:
				term = element(i).times(n * factor * m.loops[inner])
			}
			out = out.plus(term)
		}
	}
	return out
}

// sum adds b up over a loop that runs count times over elements of one size together, and takes the loop out of it.
func (m *meter) sum(b, count, together bound) bound {
	last := len(m.loops) + 1
	if len(b) <= last {
		return m.product(count, b)
	}
	return m.product(count, b[:last]).plus(together.times(b[last]))
}

// expr returns the cost of an expression and the size of its value.
func (m *meter) expr(e ast.Expr) (cost, size bound) {
	switch e.Kind() {
	case ast.LiteralKind:
		return fixed(1), fixed(literalSize(e))
	case ast.IdentKind:
		return fixed(1), m.ident(e)
	case ast.SelectKind:
		cost, size = m.expr(e.AsSelect().Operand())
		return cost.plus(fixed(1)), m.scalar(e, size)
	case ast.ListKind:
		return m.all(e.AsList().Elements())
	case ast.MapKind:
		var parts []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return m.all(parts)
	case ast.CallKind:
		return m.call(e)
	case ast.ComprehensionKind:
		return m.loop(e.AsComprehension())
	}
	return fixed(2 * MaxCost), fixed(1)
}

// all returns the cost and the size of several values together.
func (m *meter) all(parts []ast.Expr) (cost, size bound) {
	cost, size = fixed(1), fixed(1)
	for _, part := range parts {
		c, s := m.expr(part)
		cost, size = cost.plus(c), size.plus(s)
	}
	return cost, size
}

func (m *meter) ident(e ast.Expr) bound {
	if i := m.find(e.AsIdent()); i >= 0 {
		return m.scope[i].size
	}
	if m.ast.GetType(e.ID()).Kind() == types.StringKind {
		return element(sizeName)
	}
	switch e.AsIdent() {
	case names[nameArgs].Name:
		return element(sizeArgs)
	case names[nameActorRoles].Name:
		return element(sizeRoles)
	case names[nameRiskRules].Name:
		return element(sizeRules)
	}
	return m.scalar(e, fixed(AnyInput))
}

// scalar returns 1 for an expression whose value is a number or the like, else size.
func (m *meter) scalar(e ast.Expr, size bound) bound {
	switch m.ast.GetType(e.ID()).Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.TimestampKind, types.DurationKind,
		types.NullTypeKind, types.TypeKind:
		return fixed(1)
	}
	return size
}

func literalSize(e ast.Expr) float64 {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return float64(1 + len(v))
	case types.Bytes:
		return float64(1 + len(v))
	}
	return 1
}

func (m *meter) call(e ast.Expr) (cost, size bound) {
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	cost, size = fixed(1), fixed(1)
	sizes := make([]bound, len(args))
	for i, arg := range args {
		var c bound
		c, sizes[i] = m.expr(arg)
		cost, size = cost.plus(c), size.plus(sizes[i])
	}
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse, "dyn":
	case operators.Conditional:
		size = sizes[1].or(sizes[2])
	case operators.Index:
		size = m.index(args[0], args[1], sizes[0])
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, "math.@max",
		"math.@min":
		cost, size = cost.plus(size.times(perByte)), fixed(1) // a number or a time; math.greatest may read a list
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals:
		cost = cost.plus(m.less(sizes[0], sizes[1])) // two of different size are different
	case operators.Add, operators.In:
		cost = cost.plus(size)
	case "matches":
		cost = cost.plus(sizes[0].times(perRegex * regexSize(args[1])))
	case "startsWith", "endsWith":
		cost = cost.plus(m.less(sizes[0], sizes[1]).times(perByte))
	case "lowerAscii", "contains":
		cost = cost.plus(size.times(perByte))
	default:
		// A conversion: it reads its operand, and what it makes is not four times as large (bytes as text), or a number
		// or a time as text.
		cost, size = cost.plus(size.times(perByte)).plus(fixed(10)), size.times(4).plus(fixed(64))
	}
	return cost, m.scalar(e, size)
}

// index returns the size of what is found in a list or map. Where a loop over a map looks up what stands under the name
// it is at, that is the element of the loop.
func (m *meter) index(in, key ast.Expr, all bound) bound {
	if key.Kind() == ast.IdentKind {
		if i := m.find(key.AsIdent()); i >= 0 && m.scope[i].over != "" && m.scope[i].over == m.chain(in) {
			return m.scope[i].size
		}
	}
	return all
}

// find returns where the innermost local of a name stands in the scope, or -1.
func (m *meter) find(name string) int {
	for i := len(m.scope) - 1; i >= 0; i-- {
		if m.scope[i].name == name {
			return i
		}
	}
	return -1
}

// chain returns a spelling of an expression like args.a.b that two expressions share only if they mean the same. It is
// empty for any other expression.
func (m *meter) chain(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return fmt.Sprintf("%d %s", m.find(e.AsIdent()), e.AsIdent())
	case ast.SelectKind:
		if operand := m.chain(e.AsSelect().Operand()); operand != "" && !e.AsSelect().IsTestOnly() {
			return operand + "." + e.AsSelect().FieldName()
		}
	}
	return ""
}

// loop returns the cost of a loop, and the size of the list that it makes, if it makes one.
func (m *meter) loop(c ast.ComprehensionExpr) (cost, size bound) {
	cost, together := m.expr(c.IterRange())
	over := m.chain(c.IterRange())
	m.loops = append(m.loops, m.most(together))
	m.scope = append(m.scope, local{name: c.AccuVar(), size: fixed(1)},
		local{c.IterVar(), element(len(m.loops) - 1), over})
	condition, _ := m.expr(c.LoopCondition())
	step, made := m.step(c.LoopStep(), c.AccuVar())
	m.loops, m.scope = m.loops[:len(m.loops)-1], m.scope[:len(m.scope)-1]
	result, _ := m.expr(c.Result())
	m.scope = m.scope[:len(m.scope)-1]
	turns := together
	if c.IterRange().Kind() == ast.ListKind {
		turns = fixed(float64(c.IterRange().AsList().Size()))
	}
	cost = cost.plus(m.sum(condition.plus(step).plus(fixed(2)), turns, together)).plus(result)
	return cost, m.sum(made, turns, together).plus(fixed(1))
}

// step returns the cost of one turn of a loop, and the size of what it puts behind the list that it makes.
func (m *meter) step(e ast.Expr, accu string) (cost, made bound) {
	if e.Kind() == ast.CallKind {
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Add:
			if args[0].Kind() == ast.IdentKind && args[0].AsIdent() == accu {
				return m.expr(args[1])
			}
		case operators.Conditional:
			cost, made = m.step(args[1], accu)
			c, _ := m.expr(args[0])
			return cost.plus(c), made
		}
	}
	cost, _ = m.expr(e)
	return cost, fixed(0)
}

// priced returns what an expression costs, and refuses one that may cost too much.
func priced(a *ast.AST) (price, *Error) {
	b, c := cost(a)
	if c <= MaxCost {
		return priceOf(b), nil
	}
	return price{}, at(nil, fmt.Sprintf("it may cost %.3g units, more than %.3g", c, float64(MaxCost)),
		"put no loop over arguments into another unless it goes over a part of the same element, or split it")
}
