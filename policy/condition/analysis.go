package condition

import (
	"errors"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// Read reads an expression of any type, for package lint. The error is an [*Error].
func (e *Env) Read(src string) (a *ast.AST, err error) {
	defer recoverUnreadable(&err)

	checked, refused := e.parseAndCheck(src)
	if refused != nil {
		return nil, refused
	}
	a = checked.NativeRep()
	if refused := checkSubset(src, a); refused != nil {
		return nil, refused
	}
	return a, nil
}

// Typed returns an environment that only checks types: args has the given type, which the provider
// describes.
func (e *Env) Typed(provider types.Provider, args *cel.Type) (*cel.Env, error) {
	options := append(e.options[:len(e.options):len(e.options)], cel.CustomTypeProvider(provider),
		cel.Variable(nameArgs, args))
	return cel.NewEnv(options...)
}

// A Part is a part of an expression that is evaluated while some names are unknown.
type Part struct {
	program cel.Program
	reads   []string
}

// Part prepares a part of a checked expression. It fails if the part has a loop, which could take
// long.
func (e *Env) Part(of *ast.AST, expr ast.Expr) (*Part, error) {
	p := &Part{}
	for _, x := range ast.MatchDescendants(ast.NavigateExpr(of, expr), ast.AllMatcher()) {
		switch {
		case x.Kind() == ast.ComprehensionKind:
			return nil, errors.New("loops are not analyzed")
		case x.Kind() == ast.IdentKind:
			p.reads = append(p.reads, x.AsIdent())
		}
	}
	partTree := ast.NewCheckedAST(ast.NewAST(expr, of.SourceInfo()), of.TypeMap(), of.ReferenceMap())
	program, err := e.planProgram(partTree, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(MaxDecision/100))
	p.program = program
	return p, err
}

// Value returns the value of the part: an error value if the part fails, and an unknown if it
// depends on a name without a known value.
func (p *Part) Value(known map[string]ref.Val) (v ref.Val) {
	defer func() {
		if recover() != nil {
			v = types.NewUnknown(0, nil)
		}
	}()

	var unknown []*cel.AttributePatternType
	for _, name := range p.reads {
		if known[name] == nil {
			unknown = append(unknown, cel.AttributePattern(name))
		}
	}

	vars, err := cel.PartialVars(knownNames(known), unknown...)
	if err != nil {
		return types.NewUnknown(0, nil)
	}

	v, _, err = p.program.Eval(vars)
	switch {
	case errors.As(err, new(interpreter.EvalCancelledError)) || err == nil && v == nil:
		return types.NewUnknown(0, nil) // with a larger budget, there may be a value
	case err != nil:
		return types.WrapErr(err)
	}

	return v
}

// knownNames are the values of names, as CEL asks for them.
type knownNames map[string]ref.Val

// Parent implements [cel.Activation].
func (knownNames) Parent() cel.Activation { return nil }

// ResolveName implements [cel.Activation].
func (k knownNames) ResolveName(name string) (any, bool) {
	v, ok := k[name]
	return v, ok
}

// Subprogram returns a program for a part of a checked expression that is a condition itself.
// Package prove asks it about calls that stand for many.
func (e *Env) Subprogram(of *ast.AST, expr ast.Expr) (*Program, error) {
	tree := ast.NewCheckedAST(ast.NewAST(expr, of.SourceInfo()), of.TypeMap(), of.ReferenceMap())
	program, err := e.planProgram(tree)
	if err != nil {
		return nil, err
	}
	return &Program{program: program, tracker: e.tracker, queries: queriesOf(tree)}, nil
}
