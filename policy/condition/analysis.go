package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Read reads an expression of any type, for packages lint and prove. The error is an [*Error].
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
