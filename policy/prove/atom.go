package prove

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/debug"
	"cel.dev/cel-go/common/operators"

	"pgfsm/policy/condition"
)

// outcomes is the set of results that a condition can have.
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

func outcomeOf(yes bool, err error) outcomes {
	if err != nil {
		return canFail
	}
	return boolOutcome(yes)
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

// isOne reports whether there is one outcome only.
func (o outcomes) isOne() bool { return o != 0 && o&(o-1) == 0 }

// A vector has the outcomes of atoms, one byte for each. It is a text, so that it can be a key.
type vector string

// join returns the outcomes of both vectors. An empty one has none.
func (v vector) join(w vector) vector {
	if v == "" {
		return w
	}
	joined := []byte(v)
	for i := range joined {
		joined[i] |= w[i]
	}
	return vector(joined)
}

// An atom is a part of a condition that is not split at &&, ||, ! and ? :. Atoms with the same key
// have the same result for every call.
type atom struct {
	source string     // the whole condition, for people
	where  string     // the policy or risk rule with the condition
	reads  []string   // names
	risk   *riskRules // the risk rules that give risk.* its values
	place  string     // the one place that it asks about
	path   []string   // for arguments: the value that it asks about
	loop   bool       // it is a loop over the value at path
	named  bool       // of constants: the form of what it asks about names is analyzed
	free   string     // why its outcomes are not computed; empty: they are
	// These add to the tree of the place what the atom asks.
	features []func(*tree)
	program  *condition.Program
}

// A formula is a condition that is split at &&, ||, ! and ? :.
type formula struct {
	operator string // empty for an atom
	parts    []*formula
	atom     *atom
}

var connectives = []string{operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional}

func isConnective(e ast.Expr) bool { return slices.Contains(connectives, e.AsCall().FunctionName()) }

// outcomes returns the outcomes of the formula, given those of its atoms.
func (f *formula) outcomes(of func(*atom) outcomes) outcomes {
	if f.atom != nil {
		return of(f.atom)
	}
	first := f.parts[0].outcomes(of)
	switch {
	case f.operator == operators.LogicalNot:
		return first.negate()
	case f.operator == operators.LogicalAnd && first == canFalse, f.operator == operators.LogicalOr && first == canTrue:
		return first
	case f.operator == operators.LogicalAnd:
		return first.and(f.parts[1].outcomes(of))
	case f.operator == operators.LogicalOr:
		return first.negate().and(f.parts[1].outcomes(of).negate()).negate()
	}

	out := first & canFail // of c ? a : b
	if first&canTrue != 0 {
		out |= f.parts[1].outcomes(of)
	}
	if first&canFalse != 0 {
		out |= f.parts[2].outcomes(of)
	}
	return out
}

// openAtom returns the first atom on which the outcome depends.
func (f *formula) openAtom(of func(*atom) outcomes) *atom {
	if f.atom != nil {
		return f.atom
	}
	open := func(part *formula) bool { return !part.outcomes(of).isOne() }
	return f.parts[slices.IndexFunc(f.parts, open)].openAtom(of)
}

// atoms returns the atoms from the left.
func (f *formula) atoms() []*atom {
	switch {
	case f == nil:
		return nil
	case f.atom != nil:
		return []*atom{f.atom}
	}
	var all []*atom
	for _, part := range f.parts {
		all = append(all, part.atoms()...)
	}
	return all
}

// A reader reads the conditions of one side: of the policies, or of the older ones.
type reader struct {
	env   *condition.Env
	risk  *riskRules
	atoms map[string]*atom // by key; shared by the sides
}

// read reads a condition. Conditions that do not compile were refused before.
func (r *reader) read(source, where string) (*formula, error) {
	if source == "" {
		return nil, nil
	}
	checked, err := r.env.Read(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return r.split(checked, checked.Expr(), source, where)
}

func (r *reader) split(of *ast.AST, e ast.Expr, source, where string) (*formula, error) {
	if isConnective(e) {
		f := &formula{operator: e.AsCall().FunctionName()}
		for _, part := range e.AsCall().Args() {
			one, err := r.split(of, part, source, where)
			if err != nil {
				return nil, err
			}
			f.parts = append(f.parts, one)
		}
		return f, nil
	}

	a := &atom{source: source, where: where}
	for _, x := range ast.MatchDescendants(ast.NavigateExpr(of, e), ast.AllMatcher()) {
		switch {
		case x.Kind() == ast.IdentKind:
			addTo(&a.reads, x.AsIdent())
		case x.Kind() == ast.CallKind && strings.HasPrefix(x.AsCall().FunctionName(), "history."):
			addTo(&a.reads, placeHistory)
		case x.Kind() == ast.CallKind && condition.ReadsCall(x.AsCall().FunctionName()):
			addTo(&a.reads, placeOrigins)
		}
	}

	key := debug.ToAdornedDebugString(e, literalTypes{})
	if slices.ContainsFunc(a.reads, func(name string) bool { return strings.HasPrefix(name, "risk.") }) {
		a.risk = r.risk
		key = fmt.Sprintf("%p %s", r.risk, key)
	}
	if known := r.atoms[key]; known != nil {
		return &formula{atom: known}, nil
	}

	var err error
	if a.program, err = r.env.Subprogram(of, e); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	a.classify(e)
	r.atoms[key] = a
	return &formula{atom: a}, nil
}

// literalTypes tells expressions apart that CEL's debug string writes alike: 1 and 1.0.
type literalTypes struct{}

// GetMetadata implements [debug.Adorner].
func (literalTypes) GetMetadata(element any) string {
	e, ok := element.(ast.Expr)
	switch {
	case !ok:
	case e.Kind() == ast.LiteralKind:
		return ":" + e.AsLiteral().Type().TypeName()
	case e.Kind() == ast.SelectKind: // a field may have a dot in its name
		return fmt.Sprintf("~%q", e.AsSelect().FieldName())
	}
	return ""
}
