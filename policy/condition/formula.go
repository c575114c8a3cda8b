package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// A Connective is what a [Formula] makes of its parts.
type Connective uint8

// The connectives. The zero one is a test, without parts.
const (
	Test   Connective = iota
	And               // of two parts or more
	Or                // likewise
	Not               // of one part
	Choice            // of three parts: if the first, then the second, else the third
)

// A Formula is an expression as what it is put together of by &&, ||, ! and ? :.
type Formula struct {
	Connective Connective
	Parts      []*Formula
	Atom       *Atom // of a test
}

// An Atom is a part of an expression that is not taken apart. Two with the same Key come to the same for every call.
type Atom struct {
	Key string
	// Name is set if the atom asks for nothing else than this one of [Names]: for a text whether it is among Texts, for
	// a bool whether it is true, for risk.score what [Atom.AtRisk] answers.
	Name  string
	Texts []Texts
	Fixed Outcomes // of a literal what it comes to; otherwise 0

	risk *riskTable // nil if it names neither risk.score nor risk.mode
}

// Texts are all texts that equal, begin with, end with or hold a part.
type Texts struct {
	Part         string
	Before, More bool // whether anything may stand in front of it, and behind it
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

// Formula takes the expression apart.
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
	a := &Atom{Key: spell(e)}
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

// Outcomes returns what the formula comes to where of says what its atoms can come to: all that can be, and, if each
// atom can come to one thing only, nothing else. CEL's && and || give an answer where one side decides, although the
// other fails.
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

// spell writes an expression so that two that are spelt the same are the same: every call, with its target apart from
// its arguments, in brackets, and every text quoted. CEL's own writing leaves brackets out that make a difference.
func spell(e ast.Expr) string {
	var b strings.Builder
	spellTo(&b, e)
	return b.String()
}

func spellTo(b *strings.Builder, e ast.Expr) {
	list := func(open string, all ...ast.Expr) {
		b.WriteString("(" + open)
		for _, one := range all {
			b.WriteByte(' ')
			spellTo(b, one)
		}
		b.WriteByte(')')
	}
	switch e.Kind() {
	case ast.LiteralKind:
		fmt.Fprintf(b, "%s:%q", e.AsLiteral().Type().TypeName(), fmt.Sprint(e.AsLiteral().Value()))
	case ast.IdentKind:
		fmt.Fprintf(b, "%q", e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		list(fmt.Sprintf("select %q %t", s.FieldName(), s.IsTestOnly()), s.Operand())
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			list(fmt.Sprintf("of %q", c.FunctionName()), append([]ast.Expr{c.Target()}, c.Args()...)...)
		} else {
			list(fmt.Sprintf("call %q", c.FunctionName()), c.Args()...)
		}
	case ast.ListKind:
		list(fmt.Sprintf("list %v", e.AsList().OptionalIndices()), e.AsList().Elements()...)
	case ast.MapKind:
		b.WriteString("(map")
		for _, entry := range e.AsMap().Entries() {
			m := entry.AsMapEntry()
			list(fmt.Sprintf("entry %t", m.IsOptional()), m.Key(), m.Value())
		}
		b.WriteByte(')')
	case ast.StructKind:
		fmt.Fprintf(b, "(struct %q", e.AsStruct().TypeName())
		for _, entry := range e.AsStruct().Fields() {
			m := entry.AsStructField()
			list(fmt.Sprintf("field %q %t", m.Name(), m.IsOptional()), m.Value())
		}
		b.WriteByte(')')
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		list(fmt.Sprintf("loop %q %q %q", c.IterVar(), c.IterVar2(), c.AccuVar()), c.IterRange(), c.AccuInit(),
			c.LoopCondition(), c.LoopStep(), c.Result())
	default:
		fmt.Fprintf(b, "(unknown %d)", e.ID())
	}
}
