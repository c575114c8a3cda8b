package prove

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A score is an expression of the risk rules. It is exact if its value follows from the score before
// and from the outcomes of its atoms: then one call of their cells shows it.
type score struct {
	program *condition.Program
	atoms   []*atom
	exact   bool
}

// A variable is a variable of the risk rules.
type variable struct {
	name string
	*score
}

// A scoreReader reads the expressions of risk rules.
type scoreReader struct {
	rules  *riskRules
	atoms  map[string]*atom
	claims []string
	known  map[string]*score // the variables by their names in expressions
}

// readVars reads the variables, and returns the names for the rules.
func (r *scoreReader) readVars(vars []risk.Var) (*condition.Env, error) {
	env, err := condition.RiskEnv(nil, r.claims...)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range vars {
		read, err := r.readScore(env, v.Expr, fmt.Sprintf("risk variable %q", v.Name))
		if err != nil {
			return nil, err
		}
		names = append(names, v.Name)
		r.known["vars."+v.Name] = read
		r.rules.vars = append(r.rules.vars, variable{v.Name, read})
		if env, err = condition.RiskEnv(slices.Clone(names), r.claims...); err != nil {
			return nil, err
		}
	}
	return env, nil
}

func (r *scoreReader) readRule(env *condition.Env, source *risk.Rule) (rule riskRule, err error) {
	fault := func(_ string, e error) { err = e }
	rule.id, rule.globs = source.ID, source.Match.Compile(fault)
	where := fmt.Sprintf("risk rule %q", source.ID)
	for i := range source.Args {
		predicate := &source.Args[i]
		key := fmt.Sprintf("predicate %q %q %s", predicate.Path, predicate.Op, predicate.Value)
		a := r.atoms[key]
		if a == nil {
			a = &atom{key: key, source: key, where: where, reads: []string{"args"}}
			a.program = env.Predicates([]condition.Predicate{*predicate}, fault)
			a.classifyPredicate(predicate)
			r.atoms[key] = a
		}
		rule.predicates = append(rule.predicates, a)
	}
	if err == nil && source.ScoreExpr != "" {
		rule.score, err = r.readScore(env, source.ScoreExpr, where)
	}
	return rule, err
}

// readScore reads an expression. If a part of it is neither computed from the score nor an atom that
// is divided, its value is not known.
func (r *scoreReader) readScore(env *condition.Env, source, where string) (read *score, err error) {
	read = new(score)
	if read.program, err = env.Number(source); err != nil {
		return nil, err
	}
	tree, err := env.Read(source)
	if err != nil {
		return nil, err
	}
	e := &scoreExpression{
		scoreReader: r,
		score:       read,
		splitter:    &reader{env: env, atoms: r.atoms},
		tree:        tree,
		source:      source,
		where:       where,
	}
	read.exact = e.collect(tree.Expr(), false)
	return read, e.err
}

// A scoreExpression is an expression while its atoms are collected.
type scoreExpression struct {
	*scoreReader
	*score
	splitter      *reader
	tree          *ast.AST
	source, where string
	err           error
}

// computed are the functions whose value follows from those of their operands.
var computed = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Add, operators.Subtract,
	operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, "math.@max", "math.@min", "double", "int",
}

// tests are the functions whose calls can be atoms.
var tests = []string{
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, "startsWith", "endsWith", "contains", "matches",
}

// collect collects the atoms of a part, and reports whether its value follows from them and from the
// score. A part is a test if its value is a bool.
func (e *scoreExpression) collect(part ast.Expr, isTest bool) bool {
	switch part.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(part.AsList().Elements(), func(one ast.Expr) bool { return !e.collect(one, false) })
	case ast.IdentKind:
		return e.collectName(part, isTest)
	case ast.SelectKind:
		return (isTest || part.AsSelect().IsTestOnly()) && e.addAtom(part)
	case ast.ComprehensionKind:
		_, isLoop := bodyOf(part.AsComprehension())
		return isLoop && e.addAtom(part)
	case ast.CallKind:
		return e.collectCall(part, isTest)
	}
	return false
}

func (e *scoreExpression) collectName(part ast.Expr, isTest bool) bool {
	name := part.AsIdent()
	switch {
	case slices.Contains([]string{"score", "server", "tool", "env"}, name):
		return true
	case strings.HasPrefix(name, "vars."):
		v := e.known[name]
		if v == nil {
			return false
		}
		e.score.atoms = append(e.score.atoms, v.atoms...)
		return v.exact
	}
	return isTest && e.addAtom(part)
}

func (e *scoreExpression) collectCall(part ast.Expr, isTest bool) bool {
	call := part.AsCall()
	name := call.FunctionName()
	if (slices.Contains(tests, name) || isTest && name == operators.Index) && e.addAtom(part) {
		return true
	}
	if !slices.Contains(computed, name) || call.IsMemberFunction() {
		return false
	}
	for i, operand := range call.Args() {
		operandIsTest := slices.Contains(connectives, name) && (name != operators.Conditional || i == 0 || isTest)
		if !e.collect(operand, operandIsTest) {
			return false
		}
	}
	return true
}

// addAtom adds a part as an atom, if it is one whose place is divided.
func (e *scoreExpression) addAtom(part ast.Expr) bool {
	f, err := e.splitter.split(e.tree, part, e.source, e.where)
	if err != nil || f.atom == nil || f.atom.free != "" {
		return false
	}
	e.score.atoms = append(e.score.atoms, f.atom)
	return true
}

// anyScore are the values of an expression of which nothing is known.
var anyScore = func() (all []float64) {
	for value := range risk.MaxScore + 1 {
		all = append(all, float64(value))
	}
	return all
}()

// valueFor returns the value of an expression for the score before, for a call of the cells of its
// atoms; and whether it fails.
func (s *score) valueFor(r *riskRules, in *condition.Input, before int) (values []float64, fails bool) {
	subject := condition.NewSubject(in)
	for _, mode := range r.content.Modes {
		if mode.Name == r.content.Initial {
			subject.WithScore(float64(mode.Baseline))
		}
	}
	for _, v := range r.vars {
		if value, err := v.program.Value(subject); err != nil {
			subject.WithFailedVar(v.name, err.Error())
		} else {
			subject.WithVar(v.name, value)
		}
	}
	value, err := s.program.Value(subject.WithScore(float64(before)))
	if err != nil {
		return nil, true
	}
	return []float64{value}, false
}
