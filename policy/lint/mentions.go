package lint

import (
	"cmp"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"pgfsm/policy/condition"
)

// A mention is a text that an expression compares with a name, or with an element of it if the name
// is a list.
type mention struct {
	name, text   string
	line, column int // the position of the text within the expression, from 1
}

// mentionsIn returns the texts that an expression compares by ==, != or in, in their order.
func mentionsIn(of *ast.AST) (found []mention) {
	elements := map[string]string{} // the names of the lists that loops go over, by what they call an element
	add := func(name, text ast.Expr) {
		literal, ok := condition.LiteralText(text)
		if name.Kind() != ast.IdentKind || !ok {
			return
		}
		place := of.SourceInfo().GetStartLocation(text.ID())
		m := mention{name.AsIdent(), literal, place.Line(), place.Column() + 1}
		if list := elements[m.name]; list != "" {
			m.name = list
		}
		found = append(found, m)
	}

	nodes := ast.MatchDescendants(ast.NavigateAST(of), ast.AllMatcher())
	for _, e := range nodes {
		if e.Kind() == ast.ComprehensionKind && e.AsComprehension().IterRange().Kind() == ast.IdentKind {
			elements[e.AsComprehension().IterVar()] = e.AsComprehension().IterRange().AsIdent()
		}
	}

	for _, e := range nodes {
		if e.Kind() != ast.CallKind {
			continue
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			add(args[0], args[1])
			add(args[1], args[0])
		case operators.In:
			add(args[1], args[0])
			if args[1].Kind() == ast.ListKind {
				for _, one := range args[1].AsList().Elements() {
					add(args[0], one)
				}
			}
		}
	}

	slices.SortStableFunc(found, func(a, b mention) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	return found
}
