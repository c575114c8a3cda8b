package ctrl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

const (
	maxExpression = 4096 // bytes
	maxLinks      = 32   // comparisons that are links of chains, in one expression
)

// link stands in an expression for the operand that two comparisons of a chain share.
const link = "ctrl_chain_link"

// parse reads a Python expression. Starlark, whose parser it is, has no chains of comparisons (a < b < c). So each link
// behind the first is written as `… and LINK < c` and put together again.
func parse(source string) (syntax.Expr, error) {
	source = strings.TrimSpace(source)
	switch {
	case source == "":
		return nil, errors.New("it is empty")
	case len(source) > maxExpression:
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(source), maxExpression)
	case strings.ContainsFunc(source, func(r rune) bool { return r < ' ' && r != '\n' }):
		return nil, errors.New("it holds control characters") // of which one ends an expression for the parser
	case strings.Contains(source, link):
		return nil, fmt.Errorf("the name %s has a meaning here", link)
	}
	for links := 0; ; links++ {
		e, err := (&syntax.FileOptions{}).ParseExpr("", source, 0)
		if err == nil {
			return rejoin(e)
		}
		var at syntax.Error
		if !errors.As(err, &at) {
			return nil, errors.New("it is not an expression")
		}
		cut := chainCut(source, at)
		if cut < 0 || links == maxLinks {
			return nil, explain(source, at.Msg)
		}
		source = source[:cut] + " and " + link + " " + source[cut:]
	}
}

// chainCut returns where the second operator of a chain begins, or -1 if something else is wrong.
func chainCut(source string, at syntax.Error) int {
	_, rest, found := strings.Cut(at.Msg, " does not associate with ")
	operator, _, ends := strings.Cut(rest, " (use parens)")
	end := offset(source, at.Pos)
	if !found || !ends || end < 0 {
		return -1
	}
	before := strings.TrimRight(source[:end], " ")
	if operator == syntax.NOT_IN.String() {
		before = strings.TrimRight(strings.TrimSuffix(before, "in"), " ")
		operator = "not"
	}
	if !strings.HasSuffix(before, operator) {
		return -1
	}
	return len(before) - len(operator)
}

// offset returns where a position is in source, in bytes.
func offset(source string, at syntax.Position) int {
	line, col := int32(1), int32(1)
	for i, r := range source {
		switch {
		case line == at.Line && col == at.Col:
			return i
		case r == '\n':
			line, col = line+1, 1
		default:
			col++
		}
	}
	if line == at.Line && col == at.Col {
		return len(source)
	}
	return -1
}

// explain says of some mistakes what they are.
func explain(source, problem string) error {
	switch {
	case strings.Contains(source, "**"):
		return errors.New("there are no powers (**)")
	case strings.HasPrefix(problem, "got is") || strings.Contains(source, " is "):
		return errors.New("is compares objects; write == None or != None")
	}
	return errors.New("it does not parse: " + problem)
}

// A chain is a comparison whose left operand is the right operand of another: the second half of a < b < c. The whole
// is the And of both.
type chain struct {
	syntax.Expr // the first comparison
	next        *syntax.BinaryExpr
}

// rejoin brings each link to the comparison that it continues.
func rejoin(e syntax.Expr) (syntax.Expr, error) {
	var err error
	each(e, func(child *syntax.Expr) {
		if err == nil {
			*child, err = rejoin(*child)
		}
	})
	b, ok := e.(*syntax.BinaryExpr)
	if err != nil || !ok || b.Op != syntax.AND {
		return e, err
	}
	if next, ok := b.Y.(*syntax.BinaryExpr); ok && isLink(next.X) {
		return attach(b.X, next)
	}
	return e, nil
}

func isLink(e syntax.Expr) bool {
	name, ok := e.(*syntax.Ident)
	return ok && name.Name == link
}

// attach continues the comparison that stands last in e: Python binds it closer than not and and.
func attach(e syntax.Expr, next *syntax.BinaryExpr) (syntax.Expr, error) {
	var err error
	switch v := e.(type) {
	case *syntax.UnaryExpr:
		if v.Op == syntax.NOT {
			v.X, err = attach(v.X, next)
			return v, err
		}
	case *syntax.BinaryExpr:
		if v.Op == syntax.AND {
			v.Y, err = attach(v.Y, next)
			return v, err
		}
		if isComparison(v.Op) {
			next.X = v.Y
			return &chain{v, next}, nil
		}
	case *chain:
		next.X = v.next.Y
		return &chain{v, next}, nil
	}
	return nil, errors.New("it does not parse: a chain of comparisons with nothing to continue")
}

func isComparison(op syntax.Token) bool {
	return slices.Contains([]syntax.Token{syntax.EQL, syntax.NEQ, syntax.LT, syntax.GT, syntax.LE, syntax.GE, syntax.IN,
		syntax.NOT_IN}, op)
}

// each visits the operands of e.
func each(e syntax.Expr, visit func(*syntax.Expr)) {
	list := func(all []syntax.Expr) {
		for i := range all {
			visit(&all[i])
		}
	}
	switch v := e.(type) {
	case *syntax.BinaryExpr:
		visit(&v.X)
		visit(&v.Y)
	case *syntax.UnaryExpr:
		if v.X != nil {
			visit(&v.X)
		}
	case *syntax.ParenExpr:
		visit(&v.X)
	case *syntax.CondExpr:
		visit(&v.Cond)
		visit(&v.True)
		visit(&v.False)
	case *syntax.CallExpr:
		visit(&v.Fn)
		list(v.Args)
	case *syntax.DotExpr:
		visit(&v.X)
	case *syntax.IndexExpr:
		visit(&v.X)
		visit(&v.Y)
	case *syntax.ListExpr:
		list(v.List)
	case *syntax.TupleExpr:
		list(v.List)
	}
}

func bare(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// text returns the value of a literal text.
func text(e syntax.Expr) (string, bool) {
	l, ok := bare(e).(*syntax.Literal)
	if !ok || l.Token != syntax.STRING {
		return "", false
	}
	s, ok := l.Value.(string)
	return s, ok && utf8.ValidString(s)
}
