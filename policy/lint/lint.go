package lint

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// Lint returns the findings about the policies and risk rules of a configuration, sorted by place.
// The catalog has the tools as the servers declare them; without it (nil), Lint does not check
// arguments and annotations. Lint checks only files that compile; packages rules and risk report
// the errors of others.
func Lint(c *policy.Content, catalog *policy.Catalog) []Finding {
	if c == nil {
		return nil
	}
	l := &linter{content: c, levels: levelsOf(c.Risk)}
	if c.Identity != nil {
		l.claims = c.Identity.Claims
	}
	l.findTools(catalog)
	if c.Risk != nil {
		if _, err := risk.Compile(*c.Risk, l.claims...); err == nil {
			l.lintRiskRules(c.Risk)
		}
	}
	if c.Policy != nil {
		if _, err := rules.Compile(*c.Policy, l.claims...); err == nil {
			l.lintPolicies(c.Policy)
		}
	}
	slices.SortFunc(l.found, byPlace)
	return slices.CompactFunc(l.found, func(a, b Finding) bool { return a == b })
}

// A linter checks one configuration.
type linter struct {
	content *policy.Content
	claims  []string // the configured ones
	tools   []tool
	levels  []level // the levels that a call can have; nil: unknown
	found   []Finding
}

// A place is an element of a list.
type place struct {
	list  string
	index int
	id    string
}

func (l *linter) add(p place, key, code, remedy, format string, args ...any) *Finding {
	l.found = append(l.found, Finding{
		Code:     code,
		Severity: severities[code],
		List:     p.list,
		Place:    p.index,
		Policy:   p.id,
		Key:      key,
		Problem:  fmt.Sprintf(format, args...),
		Remedy:   remedy,
	})
	return &l.found[len(l.found)-1]
}

// clip keeps names from outside short and visible.
func clip(name string) string { return visible.Clip(name, 80) }

// An expression is the analysis of an expression for all calls. It is nil if the expression is not
// written.
type expression struct {
	source   string
	ast      *ast.AST
	formula  *formula
	asksRisk bool // the expression reads the mode or the score
}

// readsAny reports whether the expression reads one of some names.
func (x *expression) readsAny(names ...string) bool {
	found := false
	x.formula.forEachAtom(func(a *atom) {
		found = found || slices.ContainsFunc(a.reads, func(name string) bool { return slices.Contains(names, name) })
	})
	return found
}

// A reader reads the expressions of one environment.
type reader struct {
	atomTable
	known map[string]*expression // the expressions by source
	types *argumentTypes
}

func newReader(env *condition.Env) *reader {
	return &reader{atomTable{env, map[string]*atom{}}, map[string]*expression{},
		&argumentTypes{Provider: types.NewEmptyRegistry(), base: env}}
}

// readExpression reads an expression. It is nil for one that cannot be read, too: the compiler
// reports that.
func (r *reader) readExpression(src string) *expression {
	if src == "" {
		return nil
	}
	x, ok := r.known[src]
	if ok {
		return x
	}
	if tree, err := r.env.Read(src); err == nil {
		x = &expression{source: src, ast: tree, formula: r.splitFormula(tree, tree.Expr())}
		x.asksRisk = x.readsAny("risk.mode", "risk.score")
	}
	r.known[src] = x
	return x
}

// An entry is a policy as the linter sees it.
type entry struct {
	*rules.Policy
	place
	match           match
	when, deny, ask *expression
	shadow          bool
	strict          bool // the policy denies if when fails
	asksRisk        bool // one of its conditions asks for mode or score
}

func (l *linter) lintPolicies(c *rules.Content) {
	env, err := condition.PolicyEnv(l.claims...)
	if err != nil {
		return
	}

	r := newReader(env)
	entries := make([]*entry, len(c.Policies))

	for i := range c.Policies {
		p := &c.Policies[i]
		entries[i] = &entry{
			Policy: p,
			place:  place{Policies, i, p.ID},
			match:  newMatch(p.Match.Tool, p.Match.Server, p.Match.Env),
			when:   r.readExpression(p.When),
			deny:   r.readExpression(p.Deny),
			ask:    r.readExpression(p.RequireApprovalIf),
			shadow: p.Mode == rules.Shadow,
			strict: p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != "",
		}
	}

	for _, e := range entries {
		e.asksRisk = slices.ContainsFunc(expressionsOf(e), func(x *expression) bool { return x.asksRisk })
	}

	// Fewer levels make fewer points in each world.
	l.levels = distinguishLevels(l.levels, expressionsOf(entries...)...)
	l.checkReachability(entries)
	l.notMonotonic(entries)

	for _, e := range entries {
		l.findConstants(e)
		l.allowsEverything(e)
		for _, c := range e.conditions() {
			l.checkNames(e.place, c.key, c.expression)
			l.reportMisuses(e.place, c.key, c.source, r.types, &e.match)
		}
		l.checkApprovers(e)
		if !l.matchesNothing(e.place, &e.match, e.strict) {
			l.matchesNoTool(e)
		}
	}

	l.lintTools(entries)
}

type keyedCondition struct {
	key string
	*expression
}

// conditions returns the conditions that are written, of three.
func (e *entry) conditions() []keyedCondition {
	written := []keyedCondition{{"when", e.when}, {"deny", e.deny}, {"require_approval_if", e.ask}}
	return slices.DeleteFunc(written, func(k keyedCondition) bool { return k.expression == nil })
}

// expressionsOf returns the conditions of policies.
func expressionsOf(entries ...*entry) (found []*expression) {
	for _, e := range entries {
		for _, c := range e.conditions() {
			found = append(found, c.expression)
		}
	}
	return found
}

// worldOf returns the world of the calls that a policy matches, at the levels that it and other
// policies can tell apart.
func (l *linter) worldOf(of *entry, others ...*entry) *world {
	return newWorld(&of.match, distinguishLevels(l.levels, append(expressionsOf(of), expressionsOf(others...)...)...))
}

// holdsCalls reports whether the policy is written to hold calls.
func (e *entry) holdsCalls() bool { return e.Effect == rules.Pending || e.RequireApprovalIf != "" }

// coversTool reports whether the match covers a tool in some environment.
func (e *entry) coversTool(t *tool) bool {
	return e.match[serverName].Match(t.server) && e.match[toolName].Match(t.name)
}

// lintRiskRules lints risk.yaml.
func (l *linter) lintRiskRules(c *risk.Content) {
	everything := newMatch("", "", "")
	var names []string
	for i := range len(c.Vars) + 1 {
		env, err := condition.RiskEnv(names, l.claims...)
		if err != nil {
			return
		}
		// An expression may use the variables before it, so each gets an environment of its own.
		r := newReader(env)
		if i == len(c.Vars) {
			l.lintRules(c, r)
			break
		}
		v := c.Vars[i]
		l.lintRiskExpression(place{Vars, i, v.Name}, "expr", r.readExpression(v.Expr), r.types, &everything)
		names = append(names, v.Name)
	}
}

func (l *linter) lintRules(c *risk.Content, r *reader) {
	for i := range c.Rules {
		rule := &c.Rules[i]
		rulePlace := place{Rules, i, rule.ID}
		match := newMatch(rule.Match.Tool, rule.Match.Server, rule.Match.Env)
		l.lintRiskExpression(rulePlace, "score_expr", r.readExpression(rule.ScoreExpr), r.types, &match)
		l.checkPredicates(rulePlace, rule.Args, r.types, &match)
		l.matchesNothing(rulePlace, &match, true)
	}
}

func (l *linter) lintRiskExpression(at place, key string, x *expression, of *argumentTypes, m *match) {
	if x == nil {
		return
	}
	if newWorld(m, nil).conditionOutcomes(x, 0) == canFail {
		l.add(at, key, ConditionAlwaysFails, "it raises the risk of every call; write what is meant",
			"the expression fails for every call")
	}
	l.checkNames(at, key, x)
	l.reportMisuses(at, key, x.source, of, m)
}
