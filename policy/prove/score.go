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

// riskRules are the risk rules of one side.
type riskRules struct {
	content *risk.Content
	model   *risk.Model
	vars    map[string][]*atom // by name of the variable
	rules   []riskRule
}

// A riskRule is a rule with the atoms that decide what it does.
type riskRule struct {
	globs      condition.Globs
	predicates []*atom
	score      []*atom // with a free one if the score does not follow from atoms
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
	r := &riskRules{content: c, model: model, vars: map[string][]*atom{}}
	var names []string
	env, err := condition.RiskEnv(nil, claims...)
	for i := 0; err == nil && i < len(c.Vars); i++ {
		name := c.Vars[i].Name
		if r.vars["vars."+name], err = r.readScore(&reader{env: env, atoms: atoms}, c.Vars[i].Expr, fmt.Sprintf("risk variable %q", name)); err != nil {
			return nil, err
		}
		names = append(names, name)
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
	rule.globs = source.Match.Compile(fault)
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

// readScore returns the atoms from which, with the score before, the value of an expression follows.
// If a part of it is neither computed from them nor a condition whose places are divided, one is free.
func (r *riskRules) readScore(from *reader, source, where string) ([]*atom, error) {
	tree, err := from.env.Read(source)
	if err != nil {
		return nil, err
	}
	e := &scoreReader{reader: from, rules: r, tree: tree, source: source, where: where}
	if !e.collect(tree.Expr(), false) {
		e.atoms = append(e.atoms, &atom{source: source, where: where, free: "the score of a risk rule is not computed"})
	}
	return e.atoms, nil
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
	if part.Kind() == ast.LiteralKind || slices.Contains([]string{"score", "server", "tool", "env"}, part.AsIdent()) {
		return true
	}
	if atoms, ok := r.rules.vars[part.AsIdent()]; ok {
		r.atoms = append(r.atoms, atoms...)
		return true
	}
	if isTest || r.tree.GetType(part.ID()) == types.BoolType {
		f, err := r.split(r.tree, part, r.source, r.where)
		if err == nil && !slices.ContainsFunc(f.atoms(), func(a *atom) bool { return a.free != "" }) {
			r.atoms = append(r.atoms, f.atoms()...)
			return true
		}
	}

	name, operands := part.AsCall().FunctionName(), part.AsCall().Args()
	switch {
	case part.Kind() == ast.ListKind:
		operands = part.AsList().Elements()
	case !slices.Contains(computed, name) || part.AsCall().IsMemberFunction():
		return false
	}
	for i, operand := range operands {
		operandIsTest := slices.Contains(connectives, name) && (name != operators.Conditional || i == 0 || isTest)
		if !r.collect(operand, operandIsTest) {
			return false
		}
	}
	return true
}
