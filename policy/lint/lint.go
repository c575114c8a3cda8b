package lint

import (
	"fmt"
	"slices"
	"sync"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
)

// Lint returns what is wrong with the policies and risk rules of a configuration, sorted by place. The catalog holds
// the tools as the servers declare them; without it (nil) nothing is said of arguments and annotations. Only what
// compiles is looked at: of policies or risk rules that do not, package rules and package risk say why.
func Lint(c *policy.Content, catalog *policy.Catalog) []Finding {
	if c == nil {
		return nil
	}
	l := &linter{content: c, studies: map[source]*study{}, shapes: map[[2]string]*reach{}, patterns: newPatterns()}
	l.learn(catalog)
	if c.Risk != nil {
		if _, err := risk.Compile(*c.Risk); err == nil {
			l.riskRules(c.Risk)
		}
	}
	if c.Policy != nil {
		if _, err := rules.Compile(*c.Policy); err == nil {
			l.policies(c.Policy)
		}
	}
	slices.SortFunc(l.found, byPlace)
	return slices.CompactFunc(l.found, func(a, b Finding) bool { return a == b })
}

// A linter looks at one configuration.
type linter struct {
	content  *policy.Content
	tools    []tool
	studies  map[source]*study
	shapes   map[[2]string]*reach
	patterns *patterns
	found    []Finding
}

var policyEnv = sync.OnceValues(condition.PolicyEnv)

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

// A study is what is known of an expression. A nil study stands for one that is not written.
type study struct {
	reading   *condition.Reading
	outcomes  condition.Outcomes
	conjuncts []string
	formula   *condition.Formula
}

// study reads an expression. It is nil for one that cannot be read, too: whoever compiles it says so.
func (l *linter) study(env *condition.Env, src string) *study {
	if src == "" {
		return nil
	}
	key := source{env, src}
	s, ok := l.studies[key]
	if !ok {
		if r, err := env.Read(src); err == nil {
			s = &study{r, r.Outcomes(nil), r.Conjuncts(), r.Formula()}
		}
		l.studies[key] = s
	}
	return s
}

func (s *study) only(o condition.Outcomes) bool { return s != nil && s.outcomes&^o == 0 }

const (
	canTrue  = condition.CanTrue
	canFalse = condition.CanFalse
	canFail  = condition.CanFail
)

// An entry is a policy as the linter sees it.
type entry struct {
	*rules.Policy
	place
	server, tool, env *pattern
	when, deny, ask   *study
	shadow            bool
	strict            bool // it denies if when fails
}

func (l *linter) policies(c *rules.Content) {
	env, err := policyEnv()
	if err != nil {
		return
	}
	entries := make([]*entry, len(c.Policies))
	for i := range c.Policies {
		p := &c.Policies[i]
		entries[i] = &entry{
			Policy: p, place: place{Policies, i, p.ID},
			server: l.patterns.of(p.Match.Server), tool: l.patterns.of(p.Match.Tool), env: l.patterns.of(p.Match.Env),
			when: l.study(env, p.When), deny: l.study(env, p.Deny), ask: l.study(env, p.RequireApprovalIf),
			shadow: p.Mode == rules.Shadow,
			strict: p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != "",
		}
	}
	l.unreachable(entries)
	l.milder(entries)
	for _, e := range entries {
		l.constants(e)
		l.ownApproval(e)
		l.allowsEverything(e)
		for _, c := range e.conditions() {
			l.names(e.place, c.key, c.study)
			l.arguments(e.place, c.key, c.study, e.server, e.tool)
		}
		l.approvers(e)
		l.matchesNoTool(e)
	}
	l.perTool(entries)
}

type keyed struct {
	key   string
	study *study
}

// conditions returns what is written of the three.
func (e *entry) conditions() []keyed {
	all := []keyed{{"when", e.when}, {"deny", e.deny}, {"require_approval_if", e.ask}}
	return slices.DeleteFunc(all, func(k keyed) bool { return k.study == nil })
}

// decides reports whether the policy decides every call that its globs fit.
func (e *entry) decides() bool {
	return !e.shadow && (e.When == "" || e.when.only(canTrue) || e.strict && e.when.only(canTrue|canFail))
}

// holds reports whether the policy is meant to ask for a person.
func (e *entry) holds() bool { return e.Effect == rules.Pending || e.RequireApprovalIf != "" }

// riskRules looks at risk.yaml.
func (l *linter) riskRules(c *risk.Content) {
	var names []string
	for i, v := range c.Vars {
		env, err := condition.RiskEnv(names)
		if err != nil {
			return
		}
		l.riskExpression(place{Vars, i, v.Name}, "expr", l.study(env, v.Expr), nil, nil)
		names = append(names, v.Name)
	}
	env, err := condition.RiskEnv(names)
	if err != nil {
		return
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		at := place{Rules, i, r.ID}
		server, tool := l.patterns.of(r.Match.Server), l.patterns.of(r.Match.Tool)
		l.riskExpression(at, "score_expr", l.study(env, r.ScoreExpr), server, tool)
		l.predicates(at, r.Args, server, tool)
	}
}

func (l *linter) riskExpression(at place, key string, s *study, server, tool *pattern) {
	if s == nil {
		return
	}
	if s.only(canFail) {
		l.add(at, key, ConditionAlwaysFails, "it raises the risk of every call; write what is meant",
			"the expression fails for every call")
	}
	l.names(at, key, s)
	l.arguments(at, key, s, server, tool)
}
