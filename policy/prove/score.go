package prove

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

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

// riskRules are the risk rules of one side.
type riskRules struct {
	content *risk.Content
	model   *risk.Model
	vars    []variable
	rules   []riskRule
}

// A riskRule is a rule with its predicates as atoms.
type riskRule struct {
	id         string
	globs      condition.Globs
	predicates []*atom
	score      *score // nil: the rule sets none
}

// readRisk reads risk rules; nil if there are none.
func readRisk(c *risk.Content, atoms map[string]*atom, claims []string) (*riskRules, error) {
	if c == nil {
		return nil, nil
	}
	model, err := risk.Compile(*c, claims...)
	if err != nil {
		return nil, err
	}
	r := &riskRules{content: c, model: model}
	var names []string
	env, err := condition.RiskEnv(nil, claims...)
	for i := 0; err == nil && i < len(c.Vars); i++ {
		v := &c.Vars[i]
		one, fault := r.readScore(&reader{env: env, atoms: atoms}, v.Expr, fmt.Sprintf("risk variable %q", v.Name))
		if fault != nil {
			return nil, fault
		}
		r.vars, names = append(r.vars, variable{v.Name, one}), append(names, v.Name)
		env, err = condition.RiskEnv(slices.Clone(names), claims...)
	}
	for i := 0; err == nil && i < len(c.Rules); i++ {
		var rule riskRule
		rule, err = r.readRule(&reader{env: env, atoms: atoms}, &c.Rules[i])
		r.rules = append(r.rules, rule)
	}
	return r, err
}

func (r *riskRules) readRule(from *reader, source *risk.Rule) (rule riskRule, err error) {
	fault := func(_ string, e error) { err = e }
	rule.id, rule.globs = source.ID, source.Match.Compile(fault)
	where := fmt.Sprintf("risk rule %q", source.ID)
	for i := range source.Args {
		predicate := &source.Args[i]
		key := fmt.Sprintf("predicate %q %q %s", predicate.Path, predicate.Op, predicate.Value)
		if from.atoms[key] == nil {
			a := &atom{source: key, where: where, reads: []string{"args"}}
			a.program = from.env.Predicates([]condition.Predicate{*predicate}, fault)
			a.classifyPredicate(predicate)
			from.atoms[key] = a
		}
		rule.predicates = append(rule.predicates, from.atoms[key])
	}
	if err == nil && source.ScoreExpr != "" {
		rule.score, err = r.readScore(from, source.ScoreExpr, where)
	}
	return rule, err
}

// readScore reads an expression. If a part of it is neither computed from the score nor a condition
// whose places are divided, its value is not known.
func (r *riskRules) readScore(from *reader, source, where string) (*score, error) {
	program, err := from.env.Number(source)
	if err != nil {
		return nil, err
	}
	tree, err := from.env.Read(source)
	if err != nil {
		return nil, err
	}
	e := &scoreReader{reader: from, rules: r, tree: tree, source: source, where: where}
	exact := e.collect(tree.Expr(), false)
	return &score{program, e.atoms, exact}, nil
}

// A scoreReader collects the atoms of an expression.
type scoreReader struct {
	*reader
	rules         *riskRules
	tree          *ast.AST
	source, where string
	atoms         []*atom
}

// computed are the functions whose value follows from those of their operands.
var computed = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Add, operators.Subtract,
	operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, "math.@max", "math.@min", "double", "int",
}

// collect collects the atoms of a part, and reports whether its value follows from them and from the
// score. A part is a test if only a bool is no failure.
func (r *scoreReader) collect(part ast.Expr, isTest bool) bool {
	switch part.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(part.AsList().Elements(), func(one ast.Expr) bool { return !r.collect(one, false) })
	case ast.IdentKind:
		name := part.AsIdent()
		if slices.Contains([]string{"score", "server", "tool", "env"}, name) {
			return true
		}
		i := slices.IndexFunc(r.rules.vars, func(v variable) bool { return name == "vars."+v.name })
		if i >= 0 {
			r.atoms = append(r.atoms, r.rules.vars[i].atoms...)
			return r.rules.vars[i].exact
		}
	}
	if isTest || r.tree.GetType(part.ID()) == types.BoolType {
		f, err := r.split(r.tree, part, r.source, r.where)
		if err == nil && !slices.ContainsFunc(f.atoms(), func(a *atom) bool { return a.free != "" }) {
			r.atoms = append(r.atoms, f.atoms()...)
			return true
		}
	}
	if part.Kind() != ast.CallKind || !slices.Contains(computed, part.AsCall().FunctionName()) || part.AsCall().IsMemberFunction() {
		return false
	}
	name := part.AsCall().FunctionName()
	for i, operand := range part.AsCall().Args() {
		operandIsTest := slices.Contains(connectives, name) && (name != operators.Conditional || i == 0 || isTest)
		if !r.collect(operand, operandIsTest) {
			return false
		}
	}
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
