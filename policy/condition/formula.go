package condition

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/debug"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// A Connective says how a [Formula] combines its parts.
type Connective uint8

// The connectives. The zero one is a test, without parts.
const (
	Test   Connective = iota
	And               // of two parts or more
	Or                // likewise
	Not               // of one part
	Choice            // of three parts: if the first, then the second, else the third
)

// A Formula is an expression split at &&, ||, ! and ? :.
type Formula struct {
	Connective Connective
	Parts      []*Formula
	Atom       *Atom // of a test
}

// An Atom is a part of an expression that is not split. Two atoms with the same Key have the same result for every call.
type Atom struct {
	Key string
	// Name is set if the atom depends only on this one of [Names]: for a text on whether it is among Texts, for a bool on
	// whether it is true, for risk.score on what [Atom.AtRisk] answers.
	Name  string
	Texts []Texts
	Fixed Outcomes // the result of a literal; otherwise 0

	risk *riskTable // nil if it names neither risk.score nor risk.mode
}

// Texts is the set of all texts that equal, begin with, end with or contain a part.
type Texts struct {
	Part         string
	Before, More bool // whether other text may precede it, and follow it
}

// Has reports whether s is one of them.
func (t Texts) Has(s string) bool {
	switch {
	case t.Before && t.More:
		return strings.Contains(s, t.Part)
	case t.Before:
		return strings.HasSuffix(s, t.Part)
	case t.More:
		return strings.HasPrefix(s, t.Part)
	}
	return s == t.Part
}

// Formula splits the expression.
func (r *Reading) Formula() *Formula { return r.formula(r.ast.Expr()) }

func (r *Reading) formula(e ast.Expr) *Formula {
	if e.Kind() == ast.CallKind {
		connectives := map[string]Connective{operators.LogicalAnd: And, operators.LogicalOr: Or,
			operators.LogicalNot: Not, operators.Conditional: Choice}
		if c, ok := connectives[e.AsCall().FunctionName()]; ok {
			f := &Formula{Connective: c}
			for _, part := range e.AsCall().Args() {
				f.Parts = append(f.Parts, r.formula(part))
			}
			return f
		}
	}
	a := &Atom{Key: keyOf(e)}
	a.readRisk(r, e)
	f := &Formula{Atom: a}
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral() {
		case types.True:
			a.Fixed = CanTrue
		case types.False:
			a.Fixed = CanFalse
		}
	case ast.IdentKind:
		if n, ok := nameOf(e.AsIdent()); ok && names[n].celType.Kind() == types.BoolKind {
			a.Name = names[n].Name
		}
	case ast.CallKind:
		a.call(e.AsCall())
		if fn := e.AsCall().FunctionName(); fn == operators.NotEquals && a.Texts != nil {
			if a.risk != nil {
				a.risk.negated = true
			}
			return &Formula{Connective: Not, Parts: []*Formula{f}}
		}
	}
	return f
}

// call recognises a test of one name.
func (a *Atom) call(call ast.CallExpr) {
	args := call.Args()
	if call.IsMemberFunction() {
		n, ok := plainName(call.Target())
		if !ok || names[n].celType.Kind() != types.StringKind || len(args) != 1 {
			return
		}
		text, ok := literalText(args[0])
		if !ok {
			return
		}
		switch call.FunctionName() {
		case overloads.StartsWith:
			a.Name, a.Texts = names[n].Name, []Texts{{Part: text, More: true}}
		case overloads.EndsWith:
			a.Name, a.Texts = names[n].Name, []Texts{{Part: text, Before: true}}
		case overloads.Contains:
			a.Name, a.Texts = names[n].Name, []Texts{{Part: text, Before: true, More: true}}
		}
		return
	}
	n, values := comparison(call)
	switch {
	case n < 0:
	case names[n].celType.Kind() == types.StringKind:
		a.Name, a.Texts = names[n].Name, []Texts{}
		for _, v := range values {
			if text, ok := v.(types.String); ok {
				a.Texts = append(a.Texts, Texts{Part: string(text)})
			}
		}
	}
}

// Outcomes returns the outcomes of the formula, given those of its atoms: all possible outcomes, and exactly the actual one if each atom has one outcome.
// CEL's && and || have a result if one side decides, even if the other fails.
func (f *Formula) Outcomes(of func(*Atom) Outcomes) Outcomes {
	switch f.Connective {
	case And:
		out := CanTrue
		for _, part := range f.Parts {
			out = both(out, part.Outcomes(of))
		}
		return out
	case Or:
		out := CanTrue
		for _, part := range f.Parts {
			out = both(out, part.Outcomes(of).not())
		}
		return out.not()
	case Not:
		return f.Parts[0].Outcomes(of).not()
	case Choice:
		c := f.Parts[0].Outcomes(of)
		out := c & CanFail
		if c&CanTrue != 0 {
			out |= f.Parts[1].Outcomes(of)
		}
		if c&CanFalse != 0 {
			out |= f.Parts[2].Outcomes(of)
		}
		return out
	}
	if f.Atom.Fixed != 0 {
		return f.Atom.Fixed
	}
	return of(f.Atom)
}

// Atoms calls visit for each test, from the left.
func (f *Formula) Atoms(visit func(*Atom)) {
	if f.Atom != nil {
		visit(f.Atom)
	}
	for _, part := range f.Parts {
		part.Atoms(visit)
	}
}

func (o Outcomes) not() Outcomes {
	return o&CanFail | o&CanTrue<<1 | o&CanFalse>>1
}

func both(a, b Outcomes) (out Outcomes) {
	out = (a | b) & CanFalse
	out |= a & b & CanTrue
	if a&CanFail != 0 && b&^CanFalse != 0 || b&CanFail != 0 && a&^CanFalse != 0 {
		out |= CanFail
	}
	return out
}

// keyOf encodes an expression so that two with the same key are the same.
func keyOf(e ast.Expr) string { return debug.ToAdornedDebugString(e, literalTypes{}) }

// literalTypes tell literals apart that CEL writes alike: 1 and 1.0.
type literalTypes struct{}

// GetMetadata implements [debug.Adorner].
func (literalTypes) GetMetadata(element any) string {
	if e, ok := element.(ast.Expr); ok && e.Kind() == ast.LiteralKind {
		return ":" + e.AsLiteral().Type().TypeName()
	}
	return ""
}
