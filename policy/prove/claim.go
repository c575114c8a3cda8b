package prove

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
)

// Kinds of claims.
const (
	Never      = "never"      // no call has the effect
	Always     = "always"     // every call has the effect; `pending` is also satisfied by a denial
	Reachable  = "reachable"  // some call has the effect
	Implies    = "implies"    // no call is judged more loosely than by the older policies
	Equivalent = "equivalent" // every call is judged as by the older policies
)

// A Claim says something about every call.
type Claim struct {
	ID     string
	Kind   string
	Effect string // for never, always and reachable: allow, pending or deny
	Quorum int    // for always pending: the least number of approvers
	// The calls that never, always and reachable speak about: those that the globs match and for
	// which the condition is true. If it fails, never and always speak about the call, too.
	Match condition.Match
	When  string
	Old   *policy.Bundle // for implies and equivalent
}

// A claim is a Claim with its condition read.
type claim struct {
	*Claim
	globs condition.Globs
	when  *formula
	test  *condition.Program // nil: no condition
}

func readClaim(c *Claim, s *side, atoms map[string]*atom) (read *claim, err error) {
	read = &claim{Claim: c}
	read.globs = c.Match.Compile(func(key string, fault error) { err = errors.Join(err, fmt.Errorf("%s: %w", key, fault)) })
	if err != nil || c.When == "" {
		return read, err
	}
	env, err := condition.PolicyEnv(claimsOf(s.bundle)...)
	if err != nil {
		return nil, err
	}
	where := fmt.Sprintf("claim %q, when", c.ID)
	if read.test, err = env.Bool(c.When); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	r := &reader{env: env, risk: s.risk, atoms: atoms}
	read.when, err = r.read(c.When, where)
	return read, err
}

// A decision is what policies say about a call.
type decision struct {
	effect string
	terms  *ruling.Ruling // of a held call
}

// severity orders effects, the loosest last.
var severity = map[string]int{rules.Deny: 0, rules.Pending: 1, rules.Allow: 2}

// isLooser reports whether the first decision is looser than the second, or whether both hold and
// the first asks for other or fewer approvals.
func isLooser(x, than decision) bool {
	if x.effect != than.effect {
		return severity[x.effect] > severity[than.effect]
	}
	if x.effect != rules.Pending {
		return false
	}
	changes := ruling.Changes(than.terms, x.terms)
	return slices.Contains(changes, ruling.HoldWeakened) || slices.Contains(changes, ruling.HoldChanged)
}

// concerns reports whether decisions are what the claim looks for: for reachable an example, for
// the others a counterexample.
func (c *claim) concerns(decisions ...decision) bool {
	d := decisions[0]
	switch c.Kind {
	case Always:
		if c.Effect != rules.Pending {
			return d.effect != c.Effect
		}
		return d.effect == rules.Allow || d.effect == rules.Pending && d.terms.Quorum < c.Quorum
	case Implies:
		return isLooser(d, decisions[1])
	case Equivalent:
		return isLooser(d, decisions[1]) || isLooser(decisions[1], d)
	}
	return d.effect == c.Effect
}

// covers reports whether the claim speaks about a call that the policies have judged.
func (c *claim) covers(judged *condition.Subject) bool {
	in := judged.Input()
	if !c.globs.Fit(&in) {
		return false
	}
	if c.test == nil {
		return true
	}
	yes, err := c.test.True(judged.WithBudget(condition.MaxDecision, condition.MaxTrial))
	return yes || err != nil && c.Kind != Reachable
}

// decide returns what the gates of the policy and of the risk decide about a call.
func decide(b *policy.Bundle, subject *condition.Subject) decision {
	a := b.AssessSubject(subject)
	switch a.Verdict.Outcome {
	case policy.Allow:
		return decision{effect: rules.Allow}
	case policy.Hold:
		return decision{effect: rules.Pending, terms: ruling.FromAssessment(a)}
	}
	return decision{effect: rules.Deny}
}
