package attack

import (
	"fmt"
	"slices"

	"pgfsm/policy"
)

// An Arm is a set of gates between the calls and the servers.
type Arm string

// The arms. Each up to [Grants] has all gates of the one before it; the last two have those of [Grants] and treat held calls differently.
const (
	Naive      Arm = "naive"      // every call that names a listed tool is made; nothing is judged
	Allowlist  Arm = "allowlist"  // the machine, with the bundle's allowlist and nothing else
	Policy     Arm = "policy"     // adds the tools' schemas, pins, input rules, risk rules and policies; a held call is approved without reading
	Grants     Arm = "grants"     // adds the bundle's grants and the case's
	Unattended Arm = "unattended" // has no approvers: a held call expires
	Approvals  Arm = "approvals"  // has an approver who reads: a held call that the task needs is approved, any other denied
)

// Arms lists the arms in their order.
func Arms() []Arm { return []Arm{Naive, Allowlist, Policy, Grants, Unattended, Approvals} }

// chosen puts arms into their order. None means all.
func chosen(arms []Arm) ([]Arm, error) {
	if len(arms) == 0 {
		return Arms(), nil
	}
	for _, a := range arms {
		if !slices.Contains(Arms(), a) {
			return nil, fmt.Errorf("there is no arm %q; use %v", string(a), Arms())
		}
	}
	return slices.DeleteFunc(Arms(), func(a Arm) bool { return !slices.Contains(arms, a) }), nil
}

// opened reports whether the arm shows the machine schemas that take anything.
func (a Arm) opened() bool { return a == Allowlist }

// openSchema accepts any arguments. The schema gate accepts unnamed members only if the schema says so.
const openSchema = `{"type":"object","additionalProperties":true}`

// content returns the content that the arm's bundle is compiled from. In every arm the planner is the attacker, so neither
// routes nor a model are asked. Nothing is summarized, because a summary follows the call.
func (a Arm) content(from policy.Content, grant *policy.Grant) policy.Content {
	c := from
	c.Planner = policy.Planner{Mode: policy.PlannerRouter}
	c.Summary = policy.SummaryNever
	if a == Allowlist {
		c.Input.Rules, c.Pins, c.Risk, c.Policy, c.Outputs = nil, nil, nil, nil, nil
	}
	switch {
	case !a.granted():
		c.Grants = nil
	case grant != nil:
		c.Grants = append(slices.Clone(from.Grants), *grant)
	}
	return c
}

// granted reports whether grants are in force.
func (a Arm) granted() bool { return a == Grants || a == Unattended || a == Approvals }

// bundle returns the arm whose bundle this one uses: the approver is a port and no part of it.
func (a Arm) bundle() Arm {
	if a.granted() {
		return Grants
	}
	return a
}
