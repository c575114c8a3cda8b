package lint

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
)

// An outcome is what a condition of a policy can be for the calls that the policy matches.
type outcome struct{ yes, no, fails bool }

// outcomeOf returns the outcomes of a condition; without one, those of a fixed answer.
func outcomeOf(in *prove.Space, e *entry, x *expression, index int, unwritten bool) (o outcome) {
	if x == nil {
		return outcome{yes: unwritten, no: !unwritten}
	}
	o.yes, o.no, o.fails = in.Outcomes(e.index, index)
	return o
}

// findConstants finds conditions of a policy that have the same result for every call that its
// globs match.
func (l *linter) findConstants(e *entry) {
	for _, c := range e.conditions() {
		o := outcomeOf(l.space, e, c.expression, c.index, false)
		switch {
		case !o.yes && !o.no:
			then := "every call that the policy matches is denied"
			if c.key == "when" && !e.strict {
				then = "the policy never matches"
			}
			l.add(e.place, c.key, ConditionAlwaysFails, "write what is meant",
				"the condition fails for every call that its match fits, so %s", then)
		case !o.yes:
			then := map[string]string{
				"when": "the policy never matches", "deny": "it never denies",
				"require_approval_if": "it never holds a call",
			}[c.key]
			if o.fails {
				then += ", or the condition fails"
			}
			l.add(e.place, c.key, ConditionNeverTrue, "write what is meant, or leave it out",
				"the condition is true for no call that its match fits: %s", then)
		case !o.no:
			remedy := map[string]string{
				"when": "leave it out", "deny": "write effect: deny", "require_approval_if": "write effect: pending",
			}[c.key]
			l.add(e.place, c.key, ConditionAlwaysTrue, remedy+", or write what is meant",
				"the condition is false for no call that its match fits")
		}
	}
}

// findNonMonotonic reports a policy that stops a call at one risk, and not at a higher one.
func (l *linter) findNonMonotonic(e *entry) {
	if m := l.space.Inversion(e.index); m != nil {
		level := func(r condition.Risk) string { return fmt.Sprintf("mode %q with score %d", clip(r.Mode), r.Score) }
		l.add(e.place, m.Key, RiskNotMonotonic, `write risk.mode != "safe", or risk.score >= n, so that more risk stays in`,
			"it stops a call in %s, and the same call in %s is allowed, by policy %d (%q)", level(m.Less), level(m.More),
			m.By, l.content.Policy.Policies[m.By].ID)
	}
}

// allowsEverything finds policies that allow every call that reaches them.
func (l *linter) allowsEverything(e *entry) {
	when := outcomeOf(l.space, e, e.when, 0, true)
	deny, ask := outcomeOf(l.space, e, e.deny, 1, false), outcomeOf(l.space, e, e.ask, 2, false)
	always := !when.no && (e.strict || !when.fails)
	stops := deny.yes || deny.fails || ask.yes || ask.fails
	if e.Effect == rules.Allow && !e.shadow && always && e.match.coversAll() && !stops {
		l.add(e.place, "match", AllowsEverything, "name servers or tools, or write deny or require_approval_if",
			"every call that gets here is allowed, also of tools that are put on the allowlist later")
	}
}

// checkReachability finds the policies that decide no call, and those that never ask for approval.
func (l *linter) checkReachability(entries []*entry) {
	var above []int // the policies above that decide something
	for _, e := range entries {
		covering := l.coveredBy(e, above, false)
		unreached := covering != nil
		if !unreached && e.holdsCalls() {
			covering = l.coveredBy(e, above, true)
		}
		if covering != nil {
			l.reportUnreachable(e, covering, unreached)
		}
		if !unreached && !e.shadow {
			above = append(above, e.index)
		}
	}
}

// coveredBy returns the policies above that decide every call that e can decide, or hold; nil if
// there are none. It leaves out those that are not needed.
func (l *linter) coveredBy(e *entry, above []int, holding bool) []int {
	if l.space.Decides(e.index, above, holding) || !l.space.Decides(e.index, nil, holding) {
		return nil // if it decides nothing by itself, findConstants reports it
	}
	needed := slices.Clone(above)
	for _, i := range above {
		without := slices.DeleteFunc(slices.Clone(needed), func(k int) bool { return k == i })
		if !l.space.Decides(e.index, without, holding) {
			needed = without
		}
	}
	return needed
}

// reportUnreachable reports that some policies decide every call that e could decide; or, if e is
// reached, every call for which it would ask for approval.
func (l *linter) reportUnreachable(e *entry, by []int, unreached bool) {
	var texts []string
	allows := false
	for _, i := range by {
		p := &l.content.Policy.Policies[i]
		allows = allows || p.Effect == rules.Allow
		texts = append(texts, fmt.Sprintf("policy %d (%q, %s)", i, p.ID, p.Effect))
	}
	if n := len(texts); n > 4 {
		texts = append(texts[:3], fmt.Sprintf("%d others", n-3))
	}
	deciders := strings.Join(texts, " and ")
	switch {
	case e.holdsCalls() && allows:
		l.add(e.place, "match", ApprovalUnreachable, "move the policy above, or narrow the one above",
			"no call is ever held: earlier policies decide every call that this one would hold: %s", deciders)
	case unreached:
		l.add(e.place, "match", PolicyUnreachable, "move the policy above, narrow the one above, or delete this one",
			"no call gets here: every call that this policy matches is decided before, by %s", deciders)
	}
}

// checkNames finds modes, rules, roles and other names in a condition that the configuration does
// not have.
func (l *linter) checkNames(p place, key string, x *expression) {
	if l.content.Risk == nil && p.list == Policies {
		for _, name := range []string{"risk.score", "risk.mode", "risk.rules"} {
			if x.reads(name) {
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
