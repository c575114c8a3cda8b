package attack

import (
	"fmt"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// An Arm is a set of gates between the calls and the servers. [Arm.Gates] says which.
type Arm string

// The arms. Each up to [Grants] has all gates of the one before it; the others have those of
// [Grants] and treat held calls differently.
const (
	Naive      Arm = "naive"
	Allowlist  Arm = "allowlist"
	Policy     Arm = "policy"
	Grants     Arm = "grants"
	Unattended Arm = "unattended"
	Origin     Arm = "origin"
	Approvals  Arm = "approvals"
)

// Arms lists the arms in their order.
func Arms() []Arm { return []Arm{Naive, Allowlist, Policy, Grants, Unattended, Origin, Approvals} }

// Usual lists the arms that are measured unless others are chosen: [Origin] needs a bundle with labels.
func Usual() []Arm { return []Arm{Naive, Allowlist, Policy, Grants, Unattended, Approvals} }

// Gates says which gates an arm has, in one line.
func (a Arm) Gates() string {
	return map[Arm]string{
		Naive:      "no gates: every call that names a listed tool is made",
		Allowlist:  "the machine with the allowlist, and schemas that accept anything",
		Policy:     "also the tools' schemas, pins, input rules, risk rules and policies; a held call is approved without reading",
		Grants:     "also the grants of the bundle and of the case; a held call is approved without reading",
		Unattended: "as grants, but without approvers: a held call is not made",
		Origin:     "as unattended, but a call is not held if its targets are found in the request or where the bundle's labels say",
		Approvals:  "as grants, but the approver reads: a held call that the task needs is approved, any other is denied",
	}[a]
}

// chooseArms puts arms into their order. None means the usual ones.
func chooseArms(arms []Arm) ([]Arm, error) {
	if len(arms) == 0 {
		return Usual(), nil
	}
	for _, a := range arms {
		if !slices.Contains(Arms(), a) {
			return nil, fmt.Errorf("there is no arm %q; use %v", string(a), Arms())
		}
	}
	return slices.DeleteFunc(Arms(), func(a Arm) bool { return !slices.Contains(arms, a) }), nil
}

// contentOf returns the content that the arm's bundle is compiled from. In every arm the planner is
// the attacker, so neither routes nor a model are asked. Nothing is summarized, because a summary
// follows the call.
func (a Arm) contentOf(c policy.Content, grant *policy.Grant) policy.Content {
	c.Planner = policy.Planner{Mode: policy.PlannerRouter}
	c.Summary = policy.SummaryNever
	if a == Allowlist {
		c.Input.Rules, c.Pins, c.Risk, c.Policy, c.Outputs = nil, nil, nil, nil, nil
	}
	switch {
	case !a.hasGrants():
		c.Grants = nil
	case grant != nil:
		c.Grants = append(slices.Clone(c.Grants), *grant)
	}
	if a == Origin && c.Policy != nil {
		c.Policy = holdUnlessFound(c.Policy)
	}
	return c
}

// holdUnlessFound returns the policies with one more condition: they hold no call whose targets are found.
func holdUnlessFound(c *rules.Content) *rules.Content {
	changed := *c
	changed.Policies = slices.Clone(c.Policies)
	for i := range changed.Policies {
		p := &changed.Policies[i]
		switch {
		case p.Effect == rules.Pending:
			p.Effect, p.RequireApprovalIf = rules.Allow, "!found()"
		case p.RequireApprovalIf != "":
			p.RequireApprovalIf = "(" + p.RequireApprovalIf + ") && !found()"
		}
	}
	return &changed
}

// hasGrants reports whether grants are in force.
func (a Arm) hasGrants() bool {
	return slices.Contains([]Arm{Grants, Unattended, Origin, Approvals}, a)
}

// bundleArm returns the arm whose bundle this one uses: the approver is a port and no part of it.
func (a Arm) bundleArm() Arm {
	if a.hasGrants() && a != Origin {
		return Grants
	}
	return a
}
