package config

import (
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// history refuses risk rules and policies that use earlier calls, if there is no ledger.
func (l *loader) history() {
	c := &l.out.Content
	if l.out.Ledger != "" {
		return
	}
	const remedy = `name a ledger in the configuration, as in ledger: "sqlite:pgfsm.db"`
	refuse := func(p *Places, list string, i int, key string, q []policy.HistoryQuery) {
		l.faults = append(l.faults, p.Fault(list, i, key, 0, 0, q[0].String()+" needs a ledger, which keeps the calls before", remedy))
	}
	var claims []string
	if c.Identity != nil {
		claims = c.Identity.Claims
	}
	// Both are compiled already; without the word there is nothing to check.
	if c.Policy != nil && asksHistory(c.Policy) {
		set, err := rules.Compile(*c.Policy, claims...)
		for _, one := range set.Asking() {
			refuse(l.out.PolicyPlaces, "policies", one.Index, one.Key, one.Queries)
		}
		if err != nil {
			l.outside("policy", "", "%s", err)
		}
	}
	if c.Risk != nil && mayAskHistory(c.Risk) {
		model, err := risk.Compile(*c.Risk, claims...)
		for _, one := range model.Asking() {
			refuse(l.out.RiskPlaces, one.List, one.Index, one.Key, one.Queries)
		}
		if err != nil {
			l.outside("risk", "", "%s", err)
		}
	}
}

// asksHistory reports whether a condition can use earlier calls.
func asksHistory(c *rules.Content) bool {
	for i := range c.Policies {
		p := &c.Policies[i]
		if strings.Contains(p.When+p.Deny+p.RequireApprovalIf, "history") {
			return true
		}
	}
	return false
}

func mayAskHistory(c *risk.Content) bool {
	for i := range c.Vars {
		if strings.Contains(c.Vars[i].Expr, "history") {
			return true
		}
	}
	for i := range c.Rules {
		if strings.Contains(c.Rules[i].ScoreExpr, "history") {
			return true
		}
	}
	return false
}

// toldHistory is the history of a test: queries of conditions, with their values.
var toldHistory = &shape{form: table, max: condition.MaxQueries, what: "question", cross: crossHistory, each: &shape{form: anyJSON},
	name: &shape{form: text, max: condition.MaxSource, check: func(s string) fault {
		if _, err := condition.ParseQuery(s); err != nil {
			return fault{"cannot be asked: " + err.Error(), `write it as the condition does, as in history.count("actor", "1h")`}
		}
		return fault{}
	}}}

func crossHistory(j *judge, n *node, path string) {
	for _, m := range n.members {
		if _, err := condition.ParseAnswer(m.key, m.value.text); m.value.kind != isNumber || err != nil {
			j.src.fault(m.value.at, join(path, m.key), "write a number, 0 or more for a count", "%s is no answer to %s", quote(m.value.text), quote(m.key))
		}
	}
}

// answers returns the history in a checked node.
func (n *node) answers() (all []policy.HistoryAnswer) {
	for _, m := range n.members {
		if a, err := condition.ParseAnswer(m.key, m.value.text); err == nil {
			all = append(all, a)
		}
	}
	return all
}
