package condition

import (
	"cmp"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// A Mention is a text that an expression compares with something in [Names].
type Mention struct {
	Name         string // as in [Names]; for actor.roles and risk.rules an element of it
	Text         string
	Line, Column int // of the text within the expression, as in [Error]
}

// Mentions returns the texts that the expression compares with server, tool, env, risk.mode, actor.id, actor.kind, or an element
// of actor.roles or risk.rules, by ==, != or in, in their order in the expression.
func (r *Reading) Mentions() []Mention {
	m := mentions{info: r.ast.SourceInfo()}
	m.walk(r.ast.Expr())
	slices.SortStableFunc(m.found, func(a, b Mention) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return m.found
}

// Uses reports whether the expression names something.
func (r *Reading) Uses(name string) bool {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(r.ast), ast.KindMatcher(ast.IdentKind)) {
		if e.AsIdent() == name {
			return true
		}
	}
	return false
}

type mentions struct {
	info  *ast.SourceInfo
	scope []elementOf // the innermost last
	found []Mention
}

// An elementOf is what a loop calls the element of a list.
type elementOf struct{ local, of string }

// single returns the name that e is, or is an element of.
func (m *mentions) single(e ast.Expr) string {
	if e.Kind() != ast.IdentKind {
		return ""
	}
	for i := len(m.scope) - 1; i >= 0; i-- {
		if m.scope[i].local == e.AsIdent() {
			return m.scope[i].of
		}
	}
	switch e.AsIdent() {
	case "server", "tool", "env", "actor.id", "actor.kind", "risk.mode":
		return e.AsIdent()
	}
	return ""
}

// several returns the name of a list of names.
func (m *mentions) several(e ast.Expr) string {
	if e.Kind() == ast.IdentKind && (e.AsIdent() == "actor.roles" || e.AsIdent() == "risk.rules") {
		return e.AsIdent()
	}
	return ""
}

func (m *mentions) add(name string, e ast.Expr) {
	text, ok := literalText(e)
	if name == "" || !ok {
		return
	}
	place := at(m.info.GetStartLocation(e.ID()), "", "")
	m.found = append(m.found, Mention{Name: name, Text: text, Line: place.Line, Column: place.Column})
}

func (m *mentions) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		m.walk(e.AsSelect().Operand())
	case ast.ListKind:
		m.walkAll(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			m.walkAll([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()})
		}
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			m.walk(call.Target())
		}
		m.walkAll(args)
		switch call.FunctionName() {
		case operators.Equals, operators.NotEquals:
			m.add(m.single(args[0]), args[1])
			m.add(m.single(args[1]), args[0])
		case operators.In:
			m.add(m.several(args[1]), args[0])
			if args[1].Kind() == ast.ListKind {
				for _, one := range args[1].AsList().Elements() {
					m.add(m.single(args[0]), one)
				}
			}
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		m.walkAll([]ast.Expr{c.IterRange(), c.AccuInit()})
		m.scope = append(m.scope, elementOf{c.IterVar(), m.several(c.IterRange())}, elementOf{c.AccuVar(), ""})
		m.walkAll([]ast.Expr{c.LoopCondition(), c.LoopStep()})
		m.scope = m.scope[:len(m.scope)-2]
		m.walk(c.Result())
	}
}

func (m *mentions) walkAll(all []ast.Expr) {
	for _, e := range all {
		m.walk(e)
	}
}
