package prove

import (
	"fmt"
	"reflect"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
)

// A side holds the policies and risk rules of one bundle, read for proofs.
type side struct {
	bundle   *policy.Bundle
	unlisted bool // the bundle has no policies, so it allows every call
	risk     *riskRules
	policies []entry
}

// An entry is a policy that is enforced.
type entry struct {
	id              string
	effect          string
	globs           condition.Globs
	when, deny, ask *formula
	strict          bool // the policy denies if its when fails
	held            ruling.Ruling
}

// riskRules are the risk rules of one side.
type riskRules struct {
	older   bool // of the older policies, and other than those of the new ones
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

// name distinguishes atoms about the risks of different rules.
func (r *riskRules) name() string {
	switch {
	case r == nil:
		return "no risk rules "
	case r.older:
		return "older risk rules "
	}
	return ""
}

// proofTime is the time of every call that is tried. Conditions about now are free.
const proofTime = "2026-01-01T12:00:00.000Z"

// readSide reads the policies and risk rules of a bundle. Atoms are shared with the newer side.
func readSide(b *policy.Bundle, atoms map[string]*atom, newer *side) (*side, error) {
	content := b.Content()
	var claims []string
	if content.Identity != nil {
		claims = content.Identity.Claims
	}
	env, err := condition.PolicyEnv(claims...)
	if err != nil {
		return nil, err
	}

	s := &side{bundle: b, unlisted: content.Policy == nil}
	if newer != nil && reflect.DeepEqual(content.Risk, newer.bundle.Content().Risk) {
		s.risk = newer.risk
	} else if s.risk, err = readRisk(content.Risk, atoms, claims); err != nil {
		return nil, err
	} else if s.risk != nil {
		s.risk.older = newer != nil
	}
	if s.unlisted {
		return s, nil
	}

	r := &reader{env: env, risk: s.risk, atoms: atoms, known: map[string]*formula{}}
	for i := range content.Policy.Policies {
		p := &content.Policy.Policies[i]
		if p.Mode == rules.Shadow {
			continue
		}
		e, err := r.readEntry(p)
		if err != nil {
			return nil, err
		}
		s.policies = append(s.policies, e)
	}
	return s, nil
}

func (r *reader) readEntry(p *rules.Policy) (e entry, err error) {
	e = entry{id: p.ID, effect: p.Effect}
	e.strict = p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != ""
	e.globs = p.Match.Compile(func(_ string, fault error) { err = fault })
	if err != nil {
		return e, err
	}
	for _, one := range []struct {
		key, source string
		to          **formula
	}{{"when", p.When, &e.when}, {"deny", p.Deny, &e.deny}, {"require_approval_if", p.RequireApprovalIf, &e.ask}} {
		if *one.to, err = r.read(one.source, fmt.Sprintf("policy %q, %s", p.ID, one.key)); err != nil {
			return e, err
		}
	}

	quorum, expires := p.Quorum, p.Expires
	if quorum == 0 {
		quorum = rules.DefaultQuorum
	}
	if expires == 0 {
		expires = rules.DefaultExpires
	}
	e.held = ruling.Ruling{
		Decision:  rules.Pending,
		Code:      policy.CodeApprovalRequired,
		Approvers: p.Approvers,
		Quorum:    quorum,
		Expires:   condition.Later(proofTime, expires),
		Fresh:     p.Fresh,
	}
	return e, nil
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
	scores := &scoreReader{rules: r, atoms: atoms, claims: claims, known: map[string]*score{}}
	env, err := scores.readVars(c.Vars)
	if err != nil {
		return nil, err
	}
	for i := range c.Rules {
		rule, err := scores.readRule(env, &c.Rules[i])
		if err != nil {
			return nil, err
		}
		r.rules = append(r.rules, rule)
	}
	return r, nil
}
