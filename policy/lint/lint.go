package lint

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// Lint returns the findings about the policies, risk rules and labels of a configuration, sorted by place.
// The catalog has the tools as the servers declare them; without it (nil), Lint does not check
// arguments and annotations. Lint checks only files that compile; packages rules and risk report
// the errors of others.
func Lint(c *policy.Content, catalog *policy.Catalog) []Finding {
	if c == nil {
		return nil
	}
	l := &linter{content: c}
	if c.Identity != nil {
		l.claims = c.Identity.Claims
	}
	l.findTools(catalog)
	if c.Risk != nil {
		if _, err := risk.Compile(*c.Risk, l.claims...); err == nil {
			l.lintRiskRules(c.Risk)
		}
	}
	var entries []*entry
	if c.Policy != nil {
		if _, err := rules.Compile(*c.Policy, l.claims...); err == nil {
			entries = l.lintPolicies(c.Policy)
		}
	}
	if c.Labels != nil {
		l.lintLabels(c.Labels, entries)
	}
	slices.SortFunc(l.found, byPlace)
	return slices.CompactFunc(l.found, func(a, b Finding) bool { return a == b })
}

// A linter checks one configuration.
type linter struct {
	content *policy.Content
	claims  []string // the configured ones
	tools   []tool
	space   *prove.Space // the calls that policies can be asked about
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

// An expression is an expression that is written.
type expression struct {
	source string
	ast    *ast.AST
}

// reads reports whether the expression reads a name; for an empty name, whether it reads anything of the call.
func (x *expression) reads(name string) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(x.ast), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.IdentKind && (name == "" || e.AsIdent() == name) ||
			e.Kind() == ast.CallKind && name == "" && condition.ReadsCall(e.AsCall().FunctionName())
	})) > 0
}

func newArgumentTypes(env *condition.Env) *argumentTypes {
	return &argumentTypes{Provider: types.NewEmptyRegistry(), base: env}
}

// readExpression reads an expression; nil if there is none. The expressions compile.
func (t *argumentTypes) readExpression(src string) *expression {
	tree, err := t.base.Read(src)
	if src == "" || err != nil {
		return nil
	}
	return &expression{src, tree}
}

// An entry is a policy as the linter sees it.
type entry struct {
	*rules.Policy
	place
	match           match
	when, deny, ask *expression
	shadow          bool
	strict          bool // the policy denies if when fails
}

func (l *linter) lintPolicies(c *rules.Content) []*entry {
	env, err := condition.PolicyEnv(l.claims...)
	if err != nil {
		return nil
	}

	of := newArgumentTypes(env)
	entries := make([]*entry, len(c.Policies))

	for i := range c.Policies {
		p := &c.Policies[i]
		entries[i] = &entry{
			Policy: p,
			place:  place{Policies, i, p.ID},
			match:  newMatch(p.Match.Tool, p.Match.Server, p.Match.Env),
			when:   of.readExpression(p.When),
			deny:   of.readExpression(p.Deny),
			ask:    of.readExpression(p.RequireApprovalIf),
			shadow: p.Mode == rules.Shadow,
			strict: p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != "",
		}
	}

	if l.space, err = l.newSpace(); err != nil {
		return nil
	}
	l.checkReachability(entries)
	for _, e := range entries {
		l.findConstants(e)
		l.findNonMonotonic(e)
		l.allowsEverything(e)
		for _, c := range e.conditions() {
			l.checkNames(e.place, c.key, c.expression)
			l.reportMisuses(e.place, c.key, c.source, of, &e.match)
			l.lintOrigins(e.place, c.key, c.expression, of, &e.match)
		}
		l.checkApprovers(e)
		if !l.matchesNothing(e.place, &e.match, e.strict) {
			l.matchesNoTool(e)
		}
	}

	l.lintTools(entries)
	return entries
}

// newSpace returns the calls that policies can be asked about.
func (l *linter) newSpace() (*prove.Space, error) {
	b, err := policy.Compile(policy.Content{
		Format:   policy.ContentFormat,
		Env:      l.content.Env,
		Input:    policy.Input{MaxBytes: policy.DefaultInputBytes},
		Planner:  policy.Planner{Mode: policy.PlannerRouter},
		Policy:   l.content.Policy,
		Risk:     l.content.Risk,
		Roles:    l.content.Roles,
		Identity: l.content.Identity,
		Summary:  policy.SummaryNever,
		Limits:   policy.DefaultLimits(),
	})
	if err != nil {
		return nil, err
	}
	return prove.NewSpace(b)
}

type keyedCondition struct {
	key   string
	index int // in package prove
	*expression
}

// conditions returns the conditions that are written, of three.
func (e *entry) conditions() []keyedCondition {
	written := []keyedCondition{{"when", 0, e.when}, {"deny", 1, e.deny}, {"require_approval_if", 2, e.ask}}
	return slices.DeleteFunc(written, func(k keyedCondition) bool { return k.expression == nil })
}

// holdsCalls reports whether the policy is written to hold calls.
func (e *entry) holdsCalls() bool { return e.Effect == rules.Pending || e.RequireApprovalIf != "" }

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
		of := newArgumentTypes(env)
		if i == len(c.Vars) {
			l.lintRules(c, of)
			break
		}
		v := c.Vars[i]
		l.lintRiskExpression(place{Vars, i, v.Name}, "expr", of.readExpression(v.Expr), of, &everything)
		names = append(names, v.Name)
	}
}

func (l *linter) lintRules(c *risk.Content, of *argumentTypes) {
	for i := range c.Rules {
		rule := &c.Rules[i]
		rulePlace := place{Rules, i, rule.ID}
		match := newMatch(rule.Match.Tool, rule.Match.Server, rule.Match.Env)
		l.lintRiskExpression(rulePlace, "score_expr", of.readExpression(rule.ScoreExpr), of, &match)
		l.checkPredicates(rulePlace, rule.Args, of, &match)
		l.matchesNothing(rulePlace, &match, true)
	}
}

func (l *linter) lintRiskExpression(at place, key string, x *expression, of *argumentTypes, m *match) {
	if x == nil {
		return
	}
	if l.alwaysFails(x) {
		l.add(at, key, ConditionAlwaysFails, "it raises the risk of every call; write what is meant",
			"the expression fails for every call")
	}
	l.checkNames(at, key, x)
	l.reportMisuses(at, key, x.source, of, m)
	l.lintOrigins(at, key, x, of, m)
}

// alwaysFails reports whether an expression reads nothing and fails.
func (l *linter) alwaysFails(x *expression) bool {
	env, err := condition.RiskEnv(nil)
	if err != nil || x.reads("") {
		return false
	}
	p, err := env.Number(x.source)
	if err != nil {
		return false
	}
	_, err = p.Value(condition.NewSubject(&condition.Input{}))
	return err != nil
}
