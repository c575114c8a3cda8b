package present

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/traces/ledger"
)

// Bounds of the runs that are read for counts, so the time for a page does not grow with the number
// of runs.
const (
	MaxCounted = 5000 // bounds the newest runs for the counts of policies and servers
	MaxRated   = 200  // bounds the newest rated runs for the counts of risk rules: the record of each is read
)

// A Window describes the counted runs, which are the newest.
type Window struct {
	Runs  int    `json:"runs"`
	Since string `json:"since"` // time of the oldest run's request; empty without runs
	All   bool   `json:"all"`   // the counted runs are all runs
}

// countRuns calls do for each of the newest runs, newest first.
func countRuns(r ledger.Reader, do func(*ledger.RunRow) error) (w Window, err error) {
	for q, err := range r.Runs(ledger.Filter{Newest: true, Limit: MaxCounted + 1}) {
		if err != nil {
			return w, err
		}
		if w.Runs == MaxCounted {
			return w, nil
		}
		w.Runs, w.Since = w.Runs+1, q.At
		if err := do(&q); err != nil {
			return w, err
		}
	}
	w.All = true
	return w, nil
}

// Policies holds the policies and the risk rules of a bundle, with counts of their decisions. Every
// member is always present.
type Policies struct {
	SchemaVersion int              `json:"schema_version"`
	Bundle        canonical.Digest `json:"bundle"` // empty: no gateway has used the ledger
	// Time of a gateway's last start with the bundle; empty: not in this ledger.
	Activated string `json:"activated"`
	Counted   Window `json:"counted"` // runs counted for policies
	// Runs counted for risk rules: the newest rated ones of Counted.
	Rated     Window      `json:"rated"`
	HasPolicy bool        `json:"has_policy"` // false: the allowlist alone decides
	Policies  []PolicyUse `json:"policies"`   // in the order of the file
	RiskRules []RuleUse   `json:"risk_rules"` // in the order of the file
	Others    []Use       `json:"others"`     // policies of other bundles that decided
	Unmatched int         `json:"-"`          // counted runs that no policy matched
}

// A Use counts the runs that a policy decided or a risk rule matched, and has the time of the
// newest one's request.
type Use struct {
	ID   string `json:"id"`
	Runs int    `json:"runs"`
	Last string `json:"last"` // empty: no counted run
}

// A PolicyUse is a policy with the number of its decisions.
type PolicyUse struct {
	Use
	Effect string `json:"effect"`
	Shadow bool   `json:"shadow"` // a shadow policy decides nothing
	Match  string `json:"match"`  // calls that the policy applies to
	Reason string `json:"reason"`

	Applies []Row  `json:"-"` // the parts of Match that choose calls
	Deny    string `json:"-"` // condition under which the policy denies
	Hold    string `json:"-"` // condition under which it holds
	Decides string `json:"-"` // who decides held calls, and within which time; empty if it cannot hold
}

// A RuleUse is a risk rule with the number of its matches.
type RuleUse struct {
	Use
	Match  string `json:"match"`
	Reason string `json:"reason"`

	Applies []Row  `json:"-"` // the parts of Match
	Effect  string `json:"-"` // what the rule does to the risk
}

// uses maps ids to counts.
type uses map[string]*Use

func (u uses) countRun(id, at string) {
	if u[id] == nil {
		u[id] = &Use{ID: id, Last: at} // runs come newest first
	}
	u[id].Runs++
}

func (u uses) useOf(id string) Use {
	if counted := u[id]; counted != nil {
		return *counted
	}
	return Use{ID: id}
}

// NewPolicies counts how many of the newest runs each policy and risk rule of a bundle decided. Nil
// stands for the bundle with which a gateway last started.
func NewPolicies(r ledger.Reader, bundle *policy.Bundle) (p Policies, err error) {
	p = Policies{
		SchemaVersion: SchemaVersion,
		Rated:         Window{All: true},
		Policies:      []PolicyUse{},
		RiskRules:     []RuleUse{},
		Others:        []Use{},
	}

	active, digest, activated, err := ActiveBundle(r, bundle)
	if err != nil {
		return p, err
	}

	if p.Bundle, p.Activated = digest, activated; active == nil {
		active = new(policy.Content)
	}

	ownPolicies := make(map[string]bool)
	if active.Policy != nil {
		for i := range active.Policy.Policies {
			ownPolicies[active.Policy.Policies[i].ID] = true
		}
	}

	policies, riskRules, others := make(uses), make(uses), []string{}
	p.Counted, err = countRuns(r, func(q *ledger.RunRow) error {
		if q.Policy != "" {
			if policies[q.Policy] == nil && !ownPolicies[q.Policy] {
				others = append(others, q.Policy)
			}
			policies.countRun(q.Policy, q.At)
		} else if q.Mode != "" && q.Code == string(policy.CodePolicyDenied) {
			p.Unmatched++
		}
		// The rules that matched stand only in the run's record, so only some runs are read.
		if q.Mode == "" || active.Risk == nil || p.Rated.Runs == MaxRated {
			p.Rated.All = p.Rated.All && (q.Mode == "" || active.Risk == nil)
			return nil
		}
		p.Rated.Runs, p.Rated.Since = p.Rated.Runs+1, q.At
		matched, err := RiskRules(r, q.RunID)
		for _, id := range matched {
			riskRules.countRun(id, q.At)
		}
		return err
	})
	if err != nil {
		return p, err
	}

	p.Rated.All = p.Rated.All && p.Counted.All
	for _, id := range others {
		p.Others = append(p.Others, policies.useOf(id))
	}

	p.addUses(active, policies, riskRules)
	return p, nil
}

// ActiveBundle returns the content and the digest of the active bundle: this service's own or, if
// it has none, the bundle with which a gateway last started. activated is the time of its
// activation; empty if the ledger does not have it. Without a bundle, the content is nil.
func ActiveBundle(r ledger.Reader, bundle *policy.Bundle) (c *policy.Content, digest canonical.Digest, activated string,
	err error) {
	last, err := ledger.LastActivation(r)
	switch {
	case err != nil:
		return nil, "", "", err
	case bundle != nil && (last == nil || bundle.Digest() != last.Bundle):
		return bundle.Content(), bundle.Digest(), "", nil
	case bundle != nil:
		return bundle.Content(), last.Bundle, last.At, nil
	case last == nil:
		return nil, "", "", nil
	}
	if c, err = ledger.BundleContent(r, last.Bundle); err != nil {
		err = fmt.Errorf("the active bundle: %w", err)
	}
	return c, last.Bundle, last.At, err
}

// addUses adds the policies and risk rules of a bundle.
func (p *Policies) addUses(c *policy.Content, policies, riskRules uses) {
	if p.HasPolicy = c.Policy != nil; p.HasPolicy {
		for i := range c.Policy.Policies {
			one := &c.Policy.Policies[i]
			applies := append(globRows(one.Match.Server, one.Match.Tool, one.Match.Env), Row{"when", one.When})
			p.Policies = append(p.Policies, PolicyUse{
				Use:     policies.useOf(one.ID),
				Effect:  one.Effect,
				Shadow:  one.Mode == rules.Shadow,
				Match:   joinRows(append(applies, Row{"deny", one.Deny}, Row{"require_approval_if", one.RequireApprovalIf})),
				Reason:  one.Reason,
				Applies: filledRows(applies),
				Deny:    one.Deny,
				Hold:    one.RequireApprovalIf,
				Decides: decidesText(one),
			})
		}
	}
	if c.Risk != nil {
		for i := range c.Risk.Rules {
			rule := &c.Risk.Rules[i]
			applies := ruleRows(rule)
			p.RiskRules = append(p.RiskRules, RuleUse{Use: riskRules.useOf(rule.ID), Match: joinRows(applies),
				Reason: rule.Reason, Applies: applies, Effect: effectText(rule)})
		}
	}
}

// Unused returns the ids of the policies that could decide runs, but decided none of the counted
// ones.
func (p *Policies) Unused() (ids []string) {
	for _, one := range p.Policies {
		if one.Runs == 0 && !one.Shadow {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// UnusedRules returns the ids of the risk rules that matched none of the counted runs.
func (p *Policies) UnusedRules() (ids []string) {
	for _, one := range p.RiskRules {
		if one.Runs == 0 {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// decidesText describes who decides the calls that a policy holds.
func decidesText(p *rules.Policy) string {
	if p.Effect != rules.Pending && p.RequireApprovalIf == "" {
		return ""
	}
	who := cmp.Or(strings.Join(p.Approvers, " or "), "any approver")
	expires := time.Duration(cmp.Or(p.Expires, rules.DefaultExpires)) * time.Millisecond
	return fmt.Sprintf("%d of %s, within %s", cmp.Or(p.Quorum, rules.DefaultQuorum), who, Duration(int(expires.Seconds())))
}

// effectText describes what a risk rule does.
func effectText(r *risk.Rule) string {
	switch {
	case r.SetMode != "":
		return "sets " + r.SetMode
	case r.Escalate:
		return "escalates one mode"
	}
	return "score " + r.ScoreExpr
}

func ruleRows(r *risk.Rule) []Row {
	rows := globRows(r.Match.Server, r.Match.Tool, r.Match.Env)
	for _, p := range r.Args {
		rows = append(rows, Row{"args " + p.Path + " " + p.Op, string(p.Value)})
	}
	return filledRows(rows)
}

// globRows returns the globs of an entry, except those that match everything.
func globRows(server, tool, env string) (rows []Row) {
	for _, row := range []Row{{"server", server}, {"tool", tool}, {"env", env}} {
		if row.Value != "*" {
			rows = append(rows, row)
		}
	}
	return rows
}

// joinRows writes rows in one line. Without rows, it writes "every call".
func joinRows(rows []Row) string {
	var parts []string
	for _, row := range filledRows(rows) {
		parts = append(parts, row.Name+": "+row.Value)
	}
	return cmp.Or(strings.Join(parts, "; "), "every call")
}
