package present

import (
	"cmp"
	"fmt"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Unknown is the decision about a call that cannot be judged again.
const Unknown = "unknown"

// A WhatIf compares how the run's bundle and another one judge a recorded call. Every member is
// always present.
type WhatIf struct {
	SchemaVersion int              `json:"schema_version"`
	Run           string           `json:"run"`
	Bundle        canonical.Digest `json:"bundle"`  // digest of the other bundle
	Own           Judged           `json:"own"`     // decision by the run's own bundle
	Judged        Judged           `json:"judged"`  // decision by the other bundle
	Changes       []string         `json:"changes"` // the kinds of pgfsm policy diff
	Steps         []Step           `json:"steps"`   // steps up to the other bundle's decision
}

// Judged is a decision about a call, up to an approval: allow, deny, pending or unknown.
type Judged struct {
	ruling.Ruling
	Gate   policy.Gate `json:"gate"` // the deciding gate
	Reason string      `json:"reason"`
}

// NewWhatIf returns the comparison for a run.
func NewWhatIf(run string, w *ledger.WhatIf) WhatIf {
	d := WhatIf{
		SchemaVersion: SchemaVersion,
		Run:           run,
		Bundle:        w.Bundle,
		Own:           newJudged(w.Own),
		Judged:        newJudged(w.By),
		Changes:       []string{},
		Steps:         NewSteps(run, w.Steps, false, false).Steps,
	}
	if w.Unanswered != nil {
		d.Judged = Judged{Ruling: ruling.Ruling{Decision: Unknown},
			Reason: "This bundle cannot judge the call: " + w.Unanswered.Error() + "."}
	}
	if d.Own.Decision != Unknown && d.Judged.Decision != Unknown {
		d.Changes = append(d.Changes, ruling.Changes(&d.Own.Ruling, &d.Judged.Ruling)...)
	}
	return d
}

// newJudged returns the decision that a run has reached.
func newJudged(run *states.Run) Judged {
	f := run.Facts()
	a, v := f.Assessed, policy.Verdict{}

	// A run that a gate stopped may have been assessed before.
	switch {
	case f.Stopped != nil:
		a, v = cmp.Or(f.Stopped.Assessment, a), f.Stopped.Verdict
	case a != nil:
		v = a.Verdict
	default:
		return Judged{Ruling: ruling.Ruling{Decision: Unknown},
			Reason: "The record does not lead to a decision about a call."}
	}

	j := Judged{Ruling: ruling.Ruling{Decision: ruling.Word(v), Code: v.Code}, Gate: v.Gate, Reason: v.Reason}
	if a != nil {
		j.Ruling = *ruling.FromAssessment(policy.Assessment{
			Verdict:   v,
			Policy:    a.Policy,
			Condition: a.Condition,
			Mode:      a.Mode,
			Score:     a.Score,
			Approvers: a.Approvers,
			Quorum:    a.Quorum,
			Expires:   a.Expires,
			Fresh:     a.Fresh,
		})
	}

	return j
}

// Rows describes the decision for people. Rows that do not apply are empty.
func (j *Judged) Rows() []Row {
	risk, approvers := "", ""
	if j.RiskMode != "" {
		risk = fmt.Sprintf("%s, score %d", j.RiskMode, j.RiskScore)
	}
	policy := j.Policy
	if j.Condition != "" {
		policy += " (" + j.Condition + ")"
	}
	if j.Decision == rules.Pending {
		approvers = fmt.Sprintf("%d of %s", max(j.Quorum, 1), cmp.Or(strings.Join(j.Approvers, " or "), "any approver"))
	}
	return []Row{
		{"Decision", j.Decision}, {"Reason", j.Reason}, {"Gate", string(j.Gate)}, {"Code", string(j.Code)},
		{"Policy", policy}, {"Risk", risk},
		{"Approvers", approvers}, {"Expires", j.Expires},
	}
}
