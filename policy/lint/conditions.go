package lint

import (
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// findConstants finds conditions of a policy that have the same result for every call that its
// globs match.
func (l *linter) findConstants(e *entry) {
	for _, c := range e.conditions() {
		found := newWorld(&e.match, distinguishLevels(l.levels, c.expression)).outcomesInWorld(c.expression, 0)
		limitedTo := func(o outcomes) bool { return found&^o == 0 }

		switch {
		case limitedTo(canFail):
			then := "every call that the policy matches is denied"
			if c.key == "when" && !e.strict {
				then = "the policy never matches"
			}
			l.add(e.place, c.key, ConditionAlwaysFails, "write what is meant",
				"the condition fails for every call that its match fits, so %s", then)
		case limitedTo(canFalse | canFail):
			then := map[string]string{
				"when": "the policy never matches", "deny": "it never denies",
				"require_approval_if": "it never holds a call",
			}[c.key]
			if found&canFail != 0 {
				then += ", or the condition fails"
			}
			l.add(e.place, c.key, ConditionNeverTrue, "write what is meant, or leave it out",
				"the condition is true for no call that its match fits: %s", then)
		case limitedTo(canTrue | canFail):
			remedy := map[string]string{
				"when": "leave it out", "deny": "write effect: deny", "require_approval_if": "write effect: pending",
			}[c.key]
			l.add(e.place, c.key, ConditionAlwaysTrue, remedy+", or write what is meant",
				"the condition is false for no call that its match fits")
		}
	}
}

// allowsEverything finds policies that allow every call that reaches them.
func (l *linter) allowsEverything(e *entry) {
	w := l.worldOf(e)
	when, stops := w.outcomesInWorld(e.when, canTrue),
		w.outcomesInWorld(e.deny, canFalse)|w.outcomesInWorld(e.ask, canFalse)
	always := when == canTrue || e.strict && when&canFalse == 0
	if e.Effect == rules.Allow && !e.shadow && always && e.match.coversAll() && stops == canFalse {
		l.add(e.place, "match", AllowsEverything, "name servers or tools, or write deny or require_approval_if",
			"every call that gets here is allowed, also of tools that are put on the allowlist later")
	}
}

// checkNames finds modes, rules, roles and other names in a condition that the configuration does
// not have.
func (l *linter) checkNames(p place, key string, x *expression) {
	if l.content.Risk == nil && p.list == Policies {
		for _, name := range []string{"risk.score", "risk.mode", "risk.rules"} {
			if x.readsAny(name) {
				l.add(p, key, RiskUnconfigured, "write risk rules, or ask for something else",
					"it asks for %s, but there are no risk rules: the mode is always %q, and the score 0", name,
					"unrated")
				break
			}
		}
	}
	for _, m := range mentionsIn(x.ast) {
		code, what, plural, configured := l.configuredNames(m.name)
		if code == "" || slices.Contains(configured, m.text) {
			continue
		}
		remedy := listConfigured(plural, configured)
		if m.name == nameOf[toolName] && l.containsServer(m.text) {
			code, remedy = MatchImpossible, "write the tool's own name, and compare server with that of its server"
		}
		f := l.addUnconfigured(p, key, code, what, m.text, remedy)
		f.Line, f.Column = m.line, m.column
	}
}

// configuredNames returns the texts that a name can be in this configuration, and the code of a
// finding about another; the code is empty if every text is possible.
func (l *linter) configuredNames(name string) (code, what, plural string, texts []string) {
	risk := l.content.Risk
	switch {
	case name == "risk.mode" && risk != nil:
		for _, mode := range risk.Modes {
			texts = append(texts, mode.Name)
		}
		return ModeUnknown, "risk mode", "risk modes", texts
	case name == "risk.rules" && risk != nil:
		for _, r := range risk.Rules {
			texts = append(texts, r.ID)
		}
		return RuleUnknown, "risk rule", "risk rules", texts
	case name == "actor.roles":
		return RoleUnknown, "role", "roles", l.roleNames()
	case name == "actor.kind":
		return NameUnconfigured, "kind of actor", "kinds of actors", []string{policy.ActorAgent, policy.ActorPerson}
	case name == "env":
		return NameUnconfigured, name, "environment", []string{l.content.Env}
	case name == "server":
		return ServerUnconfigured, name, "servers", l.serverNames()
	case name == "tool":
		for _, t := range l.tools {
			texts = append(texts, t.name)
		}
		return NameUnconfigured, name, "tools", texts
	}
	return "", "", "", nil
}

// serverNames returns the servers that are configured or on the allowlist.
func (l *linter) serverNames() []string {
	var names []string
	for _, s := range l.content.Servers {
		names = append(names, s.Name)
	}
	for _, t := range l.tools {
		names = append(names, t.server)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (l *linter) roleNames() []string {
	var roles []string
	for _, r := range l.content.Roles {
		roles = append(roles, r.Role)
	}
	return roles
}

// listConfigured lists the configured names of a kind.
func listConfigured(kind string, configured []string) string {
	const most = 12
	if len(configured) == 0 {
		return "configured " + kind + ": none"
	}
	ellipsis := ""
	if len(configured) > most {
		configured, ellipsis = configured[:most], ", …"
	}
	var names []string
	for _, name := range configured {
		names = append(names, clip(name))
	}
	return "configured " + kind + ": " + strings.Join(names, ", ") + ellipsis
}

// checkApprovers finds approvers that the configuration does not have.
func (l *linter) checkApprovers(e *entry) {
	roles := l.roleNames()
	for _, a := range e.Approvers {
		if !slices.Contains(roles, a) {
			l.addUnconfigured(e.place, "approvers", RoleUnknown, "role", a, listConfigured("roles", roles))
			return
		}
	}
	l.checkQuorum(e)
}

// checkQuorum finds a quorum that the people in the approvers' roles cannot reach. Users of the
// operating system do not count: a vote needs a token or an identity provider.
func (l *linter) checkQuorum(e *entry) {
	voters := make(map[string]bool)
	for _, role := range l.content.Roles {
		if !slices.Contains(e.Approvers, role.Role) {
			continue
		}
		for _, actor := range role.Actors {
			switch {
			case strings.HasPrefix(actor, policy.GroupPrefix): // any number of people
				return
			case !strings.HasPrefix(actor, policy.LocalUser):
				voters[actor] = true
			}
		}
	}

	if need := max(e.Quorum, 1); len(e.Approvers) > 0 && len(voters) < need {
		l.add(e.place, "approvers", QuorumUnreachable,
			"write the names of people's tokens into the roles; local: names cannot vote",
			"%d must approve, and %d of the approvers can vote", need, len(voters))
	}
}

// addUnconfigured reports a name that the configuration does not have.
func (l *linter) addUnconfigured(p place, key, code, kind, name, remedy string) *Finding {
	return l.add(p, key, code, remedy, "there is no %s %q in the configuration", kind, clip(name))
}
