package lint

import (
	"fmt"
	"slices"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// Lint returns the findings about the policies and risk rules of a configuration, sorted by place. The catalog has the tools as the servers declare them;
// without it (nil), Lint does not check arguments and annotations. Lint checks only files that compile; packages rules and risk report the errors of
// others.
func Lint(c *policy.Content, catalog *policy.Catalog) []Finding {
	if c == nil {
		return nil
	}
	l := &linter{content: c, expressions: map[source]*expression{}, shapes: map[string]*condition.Shape{}}
	if c.Identity != nil {
		l.claims = c.Identity.Claims
	}
	l.findTools(catalog)
	if c.Risk != nil {
		if _, err := risk.Compile(*c.Risk, l.claims...); err == nil {
			l.riskRules(c.Risk)
		}
	}
	if c.Policy != nil {
		if _, err := rules.Compile(*c.Policy, l.claims...); err == nil {
			l.policies(c.Policy)
		}
	}
	slices.SortFunc(l.found, byPlace)
	return slices.CompactFunc(l.found, func(a, b Finding) bool { return a == b })
}

// A linter checks one configuration.
type linter struct {
	content     *policy.Content
	claims      []string // the configured ones
	tools       []tool
	expressions map[source]*expression
	shapes      map[string]*condition.Shape // of arguments, by the globs of tool and server
	risk        *riskLevels
	found       []Finding
}

// A place is an element of a list.
type place struct {
	list string
	at   int
	id   string
}

func (l *linter) add(p place, key, code, remedy, format string, args ...any) *Finding {
	l.found = append(l.found, Finding{
		Code: code, Severity: severity(code), List: p.list, Place: p.at, Policy: p.id, Key: key,
		Problem: fmt.Sprintf(format, args...), Remedy: remedy,
	})
	return &l.found[len(l.found)-1]
}

func severity(code string) Severity {
	i := slices.IndexFunc(codes, func(c Code) bool { return c.Code == code })
	return codes[i].Severity
}

// clip keeps names from outside short and visible.
func clip(name string) string { return visible.Clip(name, 80) }

type source struct {
	env *condition.Env
	src string
}

// An expression is the analysis of an expression for all calls. It is nil if the expression is not written.
type expression struct {
	reading  *condition.Reading
	outcomes condition.Outcomes
	formula  *condition.Formula
	asksRisk bool // it asks for mode or score
}

// read reads an expression. It is nil for one that cannot be read, too: the compiler reports that.
func (l *linter) read(env *condition.Env, src string) *expression {
	if src == "" {
		return nil
	}
	key := source{env, src}
	x, ok := l.expressions[key]
	if !ok {
		if r, err := env.Read(src); err == nil {
			x = &expression{r, r.Outcomes(nil), r.Formula(), r.Uses("risk.mode") || r.Uses("risk.score")}
		}
		l.expressions[key] = x
	}
	return x
}

func (x *expression) only(o condition.Outcomes) bool { return x != nil && x.outcomes&^o == 0 }

const (
	canTrue  = condition.CanTrue
	canFalse = condition.CanFalse
	canFail  = condition.CanFail
)

// An entry is a policy as the linter sees it.
type entry struct {
	*rules.Policy
	place
	match           match
	when, deny, ask *expression
	shadow          bool
	strict          bool // it denies if when fails
	asksRisk        bool // one of its conditions asks for mode or score
}

func (l *linter) policies(c *rules.Content) {
	env, err := condition.PolicyEnv(l.claims...)
	if err != nil {
		return
	}
	entries := make([]*entry, len(c.Policies))
	for i := range c.Policies {
		p := &c.Policies[i]
		entries[i] = &entry{
			Policy: p, place: place{Policies, i, p.ID},
			match: newMatch(p.Match.Tool, p.Match.Server, p.Match.Env),
			when:  l.read(env, p.When), deny: l.read(env, p.Deny), ask: l.read(env, p.RequireApprovalIf),
			shadow: p.Mode == rules.Shadow,
			strict: p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != "",
		}
	}
	for _, e := range entries {
		e.asksRisk = slices.ContainsFunc(e.conditions(), func(c keyed) bool { return c.expression.asksRisk })
	}
	l.risk = newRiskLevels(l.content.Risk, entries)
	l.reachability(entries)
	l.notMonotonic(entries)
	for _, e := range entries {
		l.constants(e)
		l.approvalDenied(e)
		l.allowsEverything(e)
		for _, c := range e.conditions() {
			l.names(e.place, c.key, c.expression)
			l.misuses(e.place, c.key, c.expression, &e.match)
		}
		l.approvers(e)
		if !l.matchesNothing(e.place, &e.match, e.strict) {
			l.matchesNoTool(e)
		}
	}
	l.perTool(entries)
}

type keyed struct {
	key string
	*expression
}

// conditions returns those of the three that are written.
func (e *entry) conditions() []keyed {
	all := []keyed{{"when", e.when}, {"deny", e.deny}, {"require_approval_if", e.ask}}
	return slices.DeleteFunc(all, func(k keyed) bool { return k.expression == nil })
}

// holds reports whether the policy is written to hold calls.
func (e *entry) holds() bool { return e.Effect == rules.Pending || e.RequireApprovalIf != "" }

// about reports whether the match covers a tool in some environment.
func (e *entry) about(t *tool) bool {
	return e.match[serverName].Match(t.server) && e.match[toolName].Match(t.name)
}

// riskRules lints risk.yaml.
func (l *linter) riskRules(c *risk.Content) {
	everything := newMatch("", "", "")
	var names []string
	for i, v := range c.Vars {
		env, err := condition.RiskEnv(names, l.claims...)
		if err != nil {
			return
		}
		l.riskExpression(place{Vars, i, v.Name}, "expr", l.read(env, v.Expr), &everything)
		names = append(names, v.Name)
	}
	env, err := condition.RiskEnv(names, l.claims...)
	if err != nil {
		return
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		at := place{Rules, i, r.ID}
		match := newMatch(r.Match.Tool, r.Match.Server, r.Match.Env)
		l.riskExpression(at, "score_expr", l.read(env, r.ScoreExpr), &match)
		l.predicates(at, r.Args, &match)
		l.matchesNothing(at, &match, true)
	}
}

func (l *linter) riskExpression(at place, key string, x *expression, m *match) {
	if x == nil {
		return
	}
	if x.only(canFail) {
		l.add(at, key, ConditionAlwaysFails, "it raises the risk of every call; write what is meant",
			"the expression fails for every call")
	}
	l.names(at, key, x)
	l.misuses(at, key, x, m)
}
