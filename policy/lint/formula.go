package lint

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/debug"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"pgfsm/policy/condition"
)

// outcomes is the set of results that a condition can have. A number counts as true and false.
type outcomes uint8

const (
	canTrue outcomes = 1 << iota
	canFalse
	canFail
	anything = canTrue | canFalse | canFail
)

func boolOutcome(b bool) outcomes {
	if b {
		return canTrue
	}
	return canFalse
}

func (o outcomes) negate() outcomes { return o&canFail | o&canTrue<<1 | o&canFalse>>1 }

// and returns the outcomes of a conjunction. As in CEL, it is false if one side is false, even if
// the other fails.
func (o outcomes) and(p outcomes) (out outcomes) {
	out = (o | p) & canFalse
	out |= o & p & canTrue
	if o&canFail != 0 && p&^canFalse != 0 || p&canFail != 0 && o&^canFalse != 0 {
		out |= canFail
	}
	return out
}

// outcomesOf returns the outcomes of a value, which may be an error or unknown.
func outcomesOf(v ref.Val) outcomes {
	switch {
	case types.IsUnknown(v):
		return anything
	case types.IsError(v):
		return canFail
	case v == types.True, v == types.False:
		return boolOutcome(v == types.True)
	}
	return canTrue | canFalse
}

// A formula is an expression that is split at &&, ||, ! and ? :.
type formula struct {
	operator string // empty for an atom
	parts    []*formula
	atom     *atom
}

// An atom is a part of an expression that is not split. Atoms with the same key have the same
// result for every call.
type atom struct {
	key   string
	reads []string        // names
	texts *textTest       // nil if the atom does not compare a name with literals
	part  *condition.Part // nil if the atom has a loop
	known map[givenValues]outcomes
}

// givenValues are the values of the first names that an atom reads; nil is unknown. An atom that
// reads more is unknown.
type givenValues [4]ref.Val

// A textTest compares a name with literals: it is true if the name is one of the texts, or is none
// of them if it is negated.
type textTest struct {
	name    string
	texts   []string
	negated bool
}

var connectives = []string{operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional}

// An atomTable holds the atoms of an environment by their keys.
type atomTable struct {
	env   *condition.Env
	atoms map[string]*atom
}

// splitFormula splits a checked expression.
func (t *atomTable) splitFormula(of *ast.AST, e ast.Expr) *formula {
	if e.Kind() == ast.CallKind && slices.Contains(connectives, e.AsCall().FunctionName()) {
		f := &formula{operator: e.AsCall().FunctionName()}
		for _, part := range e.AsCall().Args() {
			f.parts = append(f.parts, t.splitFormula(of, part))
		}
		return f
	}

	key := debug.ToAdornedDebugString(e, literalTypes{})
	if a := t.atoms[key]; a != nil {
		return &formula{atom: a}
	}

	a := &atom{key: key, known: map[givenValues]outcomes{}}
	t.atoms[key] = a

	for _, x := range ast.MatchDescendants(ast.NavigateExpr(of, e), ast.AllMatcher()) {
		switch {
		case x.Kind() == ast.IdentKind && !slices.Contains(a.reads, x.AsIdent()):
			a.reads = append(a.reads, x.AsIdent())
		case x.Kind() == ast.CallKind && strings.HasPrefix(x.AsCall().FunctionName(), "history."):
			a.reads = append(a.reads, "history")
		}
	}

	// An atom with a loop keeps no part: each of its answers is possible.
	if part, err := t.env.Part(of, e); err == nil {
		a.part = part
	}

	if e.Kind() == ast.CallKind {
		a.texts = newTextTest(e.AsCall())
	}

	return &formula{atom: a}
}

// newTextTest returns nil for a call that is no comparison of a name with literals.
func newTextTest(call ast.CallExpr) *textTest {
	args := call.Args()
	t := &textTest{negated: call.FunctionName() == operators.NotEquals}
	var literals []ast.Expr

	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals:
		if args[0].Kind() != ast.IdentKind {
			args = []ast.Expr{args[1], args[0]}
		}
		literals = args[1:]
	case operators.In:
		if args[1].Kind() != ast.ListKind {
			return nil
		}
		literals = args[1].AsList().Elements()
	default:
		return nil
	}

	if args[0].Kind() != ast.IdentKind {
		return nil
	}

	t.name = args[0].AsIdent()
	for _, e := range literals {
		literal, ok := condition.LiteralText(e)
		if !ok {
			return nil
		}
		t.texts = append(t.texts, literal)
	}

	return t
}

// outcomes returns the outcomes of the formula, given those of its atoms.
func (f *formula) outcomes(of func(*atom) outcomes) outcomes {
	switch f.operator {
	case operators.LogicalAnd:
		return f.parts[0].outcomes(of).and(f.parts[1].outcomes(of))
	case operators.LogicalOr:
		return f.parts[0].outcomes(of).negate().and(f.parts[1].outcomes(of).negate()).negate()
	case operators.LogicalNot:
		return f.parts[0].outcomes(of).negate()
	case operators.Conditional:
		chosen := f.parts[0].outcomes(of)
		out := chosen & canFail
		if chosen&canTrue != 0 {
			out |= f.parts[1].outcomes(of)
		}
		if chosen&canFalse != 0 {
			out |= f.parts[2].outcomes(of)
		}
		return out
	}
	return of(f.atom)
}

// forEachAtom visits the atoms from the left.
func (f *formula) forEachAtom(visit func(*atom)) {
	if f.atom != nil {
		visit(f.atom)
	}
	for _, part := range f.parts {
		part.forEachAtom(visit)
	}
}

// outcomesFor returns the outcomes of the atom if only the given values of names are known.
func (a *atom) outcomesFor(values map[string]ref.Val) outcomes {
	var given givenValues
	if a.part == nil || len(a.reads) > len(given) {
		return anything
	}
	for i, name := range a.reads {
		given[i] = values[name]
	}
	out, ok := a.known[given]
	if !ok {
		out = outcomesOf(a.part.Value(values))
		a.known[given] = out
	}
	return out
}

// literalTypes tells literals apart that CEL's debug string writes alike: 1 and 1.0.
type literalTypes struct{}

// GetMetadata implements [debug.Adorner].
func (literalTypes) GetMetadata(element any) string {
	if e, ok := element.(ast.Expr); ok && e.Kind() == ast.LiteralKind {
		return ":" + e.AsLiteral().Type().TypeName()
	}
	return ""
}
