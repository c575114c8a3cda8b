package prove

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/condition"
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

// An entry is a policy.
type entry struct {
	index           int
	effect          string
	shadow          bool
	globs           condition.Globs
	when, deny, ask *formula
	strict          bool // the policy denies if its when fails
	held            ruling.Ruling
}

func (e *entry) atoms() []*atom { return slices.Concat(e.when.atoms(), e.deny.atoms(), e.ask.atoms()) }

// proofTime is the time of every call that is tried. Conditions about now are free.
const proofTime = "2026-01-01T12:00:00.000Z"

// claimsOf returns the claims of requesters that conditions may read.
func claimsOf(b *policy.Bundle) []string {
	if identity := b.Content().Identity; identity != nil {
		return identity.Claims
	}
	return nil
}

// readSide reads the policies and risk rules of a bundle. Atoms are shared with the newer side.
func readSide(b *policy.Bundle, atoms map[string]*atom, newer *side) (*side, error) {
	content := b.Content()
	env, err := condition.PolicyEnv(claimsOf(b)...)
	if err != nil {
		return nil, err
	}

	s := &side{bundle: b, unlisted: content.Policy == nil}
	if newer != nil && reflect.DeepEqual(content.Risk, newer.bundle.Content().Risk) {
		s.risk = newer.risk
	} else if s.risk, err = readRisk(content.Risk, atoms, claimsOf(b)); err != nil {
		return nil, err
	}
	if s.unlisted {
		return s, nil
	}

	r := &reader{env: env, risk: s.risk, atoms: atoms}
	for i := range content.Policy.Policies {
		e, err := r.readEntry(i, &content.Policy.Policies[i])
		if err != nil {
			return nil, err
		}
		s.policies = append(s.policies, e)
	}
	return s, nil
}

func (r *reader) readEntry(index int, p *rules.Policy) (e entry, err error) {
	e = entry{index: index, effect: p.Effect, shadow: p.Mode == rules.Shadow}
	e.strict = p.Effect != rules.Allow || p.Deny != "" || p.RequireApprovalIf != ""
	e.globs = p.Match.Compile(func(_ string, fault error) { err = fault })
	for _, one := range []struct {
		key, source string
		to          **formula
	}{{"when", p.When, &e.when}, {"deny", p.Deny, &e.deny}, {"require_approval_if", p.RequireApprovalIf, &e.ask}} {
		if err == nil {
			*one.to, err = r.read(one.source, fmt.Sprintf("policy %q, %s", p.ID, one.key))
		}
	}

	e.held = ruling.Ruling{
		Decision:  rules.Pending,
		Code:      policy.CodeApprovalRequired,
		Approvers: p.Approvers,
		Quorum:    cmp.Or(p.Quorum, rules.DefaultQuorum),
		Expires:   condition.Later(proofTime, cmp.Or(p.Expires, rules.DefaultExpires)),
		Fresh:     p.Fresh,
	}
	return e, err
}

// fitting returns the enforced policies that can decide about a tool.
func (s *side) fitting(in *condition.Input) (entries []*entry) {
	for i := range s.policies {
		e := &s.policies[i]
		if e.shadow || !e.globs.Fit(in) {
			continue
		}
		entries = append(entries, e)
		if e.when == nil && e.deny == nil && e.ask == nil {
			break // no call gets below it
		}
	}
	return entries
}
