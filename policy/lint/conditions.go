package lint

import (
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// constants finds conditions of a policy that come to the same for every call that its globs fit.
func (l *linter) constants(e *entry) {
	for _, c := range e.conditions() {
		outcomes := e.outcomes(c.study)
		only := func(o condition.Outcomes) bool { return outcomes&^o == 0 }
		call := "call"
		if outcomes != c.study.outcomes && !(e.server.any && e.tool.any && e.env.any) {
			call = "call that its match fits"
		}
		switch {
		case only(canFail):
			then := "every call that the policy matches is denied"
			if c.key == "when" && !e.strict {
				then = "the policy never matches"
			}
			l.add(e.place, c.key, ConditionAlwaysFails, "write what is meant",
				"the condition fails for every %s, so %s", call, then)
		case only(canFalse | canFail):
			then := map[string]string{
				"when": "the policy never matches", "deny": "it never denies", "require_approval_if": "nobody is ever asked",
			}[c.key]
			if outcomes&canFail != 0 {
				then += ", or the condition fails"
			}
			l.add(e.place, c.key, ConditionNeverTrue, "write what is meant, or leave it out",
				"the condition is true for no %s: %s", call, then)
		case only(canTrue | canFail):
			remedy := map[string]string{
				"when": "leave it out", "deny": "write effect: deny", "require_approval_if": "write effect: pending",
			}[c.key]
			l.add(e.place, c.key, ConditionAlwaysTrue, remedy+", or write what is meant",
				"the condition is false for no %s", call)
		}
	}
}

// outcomes returns what a condition of the policy can come to for the calls that its globs fit.
func (e *entry) outcomes(s *study) condition.Outcomes {
	alone := *e
	alone.when, alone.deny, alone.ask = s, nil, nil
	work := maxOwnSteps
	m, ok := newModel(&alone, nil, nil, &work)
	if !ok {
		return s.outcomes
	}
	var outcomes condition.Outcomes
	for _, o := range []condition.Outcomes{canTrue, canFalse, canFail} {
		ways := maxOwnWays
		_, never := m.never(func(_ *entry, w way) condition.Outcomes {
			switch is := m.outcomes(s, w, 0); {
			case is == o:
				return canTrue
			case is&o != 0:
				return canTrue | canFalse
			}
			return canFalse
		}, &ways)
		if !never {
			outcomes |= o
		}
	}
	return outcomes
}

// allowsEverything finds policies that allow whatever gets to them.
func (l *linter) allowsEverything(e *entry) {
	never := func(s *study) bool { return s == nil || s.only(canFalse) }
	if e.Effect == rules.Allow && e.decides() && e.server.any && e.tool.any && e.env.any && never(e.deny) && never(e.ask) {
		l.add(e.place, "match", AllowsEverything, "name servers or tools, or write deny or require_approval_if",
			"every call that gets here is allowed, also of tools that are put on the allowlist later")
	}
}

// names finds modes, rules, roles and other names in a condition that the configuration does not have.
func (l *linter) names(p place, key string, s *study) {
	if s == nil {
		return
	}
	if l.content.Risk == nil && p.list == Policies {
		for _, name := range []string{"risk.score", "risk.mode", "risk.rules"} {
			if s.reading.Uses(name) {
				l.add(p, key, RiskUnconfigured, "write risk rules, or ask for something else",
					"it asks for %s, but there are no risk rules: the mode is always %q, and the score 0", name, "unrated")
				break
			}
		}
	}
	for _, m := range s.reading.Mentions() {
		code, remedy := l.mentioned(m)
		if code == "" {
			continue
		}
		what := map[string]string{
			ModeUnknown: "risk mode", RuleUnknown: "risk rule", RoleUnknown: "role", NameUnconfigured: m.Name,
		}[code]
		f := l.add(p, key, code, remedy, "there is no %s %q in the configuration", what, clip(m.Text))
		f.Line, f.Column = m.Line, m.Column
	}
}

// mentioned judges one text; code is empty if it is known, or if nobody can say.
func (l *linter) mentioned(m condition.Mention) (code, remedy string) {
	var known []string
	switch m.Name {
	case "risk.mode":
		if code = ModeUnknown; l.content.Risk == nil {
			return "", ""
		}
		for _, mode := range l.content.Risk.Modes {
			known = append(known, mode.Name)
		}
	case "risk.rules":
		if code = RuleUnknown; l.content.Risk == nil {
			return "", ""
		}
		for _, r := range l.content.Risk.Rules {
			known = append(known, r.ID)
		}
	case "actor.roles":
		code, known = RoleUnknown, l.roles()
	case "env":
		code, known = NameUnconfigured, []string{l.content.Env}
	case "server":
		code = NameUnconfigured
		for _, t := range l.tools {
			known = append(known, t.server)
		}
		for _, s := range l.content.Servers {
			known = append(known, s.Name)
		}
	case "tool":
		code = NameUnconfigured
		for _, t := range l.tools {
			known = append(known, t.name)
		}
	}
	for _, k := range known {
		if k == m.Text {
			return "", ""
		}
	}
	kind := map[string]string{
		"risk.mode": "risk modes", "risk.rules": "risk rules", "actor.roles": "roles", "env": "environment", "server": "servers", "tool": "tools",
	}[m.Name]
	return code, among(kind, known)
}

func (l *linter) roles() []string {
	var roles []string
	for _, r := range l.content.Roles {
		roles = append(roles, r.Role)
	}
	return roles
}

// among lists what is configured of a kind.
func among(kind string, known []string) string {
	const most = 12
	if len(known) == 0 {
		return "configured " + kind + ": none"
	}
	rest := ""
	if len(known) > most {
		known, rest = known[:most], ", …"
	}
	said := make([]string, len(known))
	for i, k := range known {
		said[i] = clip(k)
	}
	return "configured " + kind + ": " + strings.Join(said, ", ") + rest
}

// approvers finds those who may decide and whom the configuration does not have.
func (l *linter) approvers(e *entry) {
	roles := l.roles()
	for _, a := range e.Approvers {
		known := false
		for _, r := range roles {
			known = known || r == a
		}
		if !known {
			l.add(e.place, "approvers", RoleUnknown, among("roles", roles), "there is no role %q in the configuration", clip(a))
		}
	}
}

// arguments holds an expression against the inputSchemas of the tools that it can be about; nil patterns are `*`.
func (l *linter) arguments(p place, key string, s *study, server, tool *pattern) {
	if s == nil || !s.reading.Uses("args") {
		return
	}
	about := l.reach(server, tool)
	if about.none {
		return
	}
	for _, m := range s.reading.Misuses(about.shape) {
		code := ArgumentType
		if m.Unknown {
			code = ArgumentUnknown
		}
		f := l.add(p, key, code, m.Remedy, "%s", m.Problem)
		f.Line, f.Column = m.Line, m.Column
	}
}

// A reach is what a match can be about.
type reach struct {
	none  bool             // nothing of which anything is known
	shape *condition.Shape // of the arguments of all its tools
}

// reach unites the arguments of the tools on the allowlist that two globs fit. If of one of them nothing is known, it
// may have any.
func (l *linter) reach(server, tool *pattern) *reach {
	var key [2]string
	if server != nil {
		key[0] = server.String()
	}
	if tool != nil {
		key[1] = tool.String()
	}
	if known := l.shapes[key]; known != nil {
		return known
	}
	r := &reach{none: true}
	for i := range l.tools {
		t := &l.tools[i]
		if server != nil && !server.Match(t.server) || tool != nil && !tool.Match(t.name) {
			continue
		}
		if t.shape == nil {
			r.none, r.shape = true, nil
			break
		}
		if r.none {
			r.none, r.shape = false, t.shape
		} else {
			r.shape = either(r.shape, t.shape)
		}
	}
	l.shapes[key] = r
	return r
}

// predicates holds the predicates of a risk rule against the same.
func (l *linter) predicates(p place, args []risk.Predicate, server, tool *pattern) {
	about := l.reach(server, tool)
	if about.none {
		return
	}
	for i := range args {
		l.predicate(p, i, &args[i], about.shape)
	}
}
