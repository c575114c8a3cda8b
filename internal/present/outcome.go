package present

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/states"
)

// An Outcome describes a run that ended or is held. docs/reference/agent-contract.md documents it.
type Outcome struct {
	SchemaVersion int    `json:"schema_version"`
	Type          string `json:"type"`
	State         string `json:"state"`
	RunID         string `json:"run_id"`
	// The trace's file; empty: none was written.
	Trace    string                `json:"trace,omitzero"`
	Ledger   string                `json:"ledger"` // the ledger's URL
	Head     canonical.Digest      `json:"head"`
	Approval *Wanted               `json:"approval,omitzero"`
	Plan     jsontext.Value        `json:"plan,omitzero"`
	Typed    jsontext.Value        `json:"typed,omitzero"`
	Raw      jsontext.Value        `json:"raw,omitzero"`
	IsError  *bool                 `json:"is_error,omitzero"`
	Summary  []evidence.Located    `json:"summary,omitzero"`
	Note     string                `json:"note,omitzero"`
	Gate     policy.Gate           `json:"gate,omitzero"`
	Code     policy.Code           `json:"code,omitzero"`
	Reason   string                `json:"reason,omitzero"`
	Effect   states.Effect         `json:"effect,omitzero"`
	Servers  []states.ServerStatus `json:"servers,omitzero"`
	Track    Track                 `json:"-"`
}

// Wanted describes the approval that a held run waits for.
type Wanted struct {
	Binding   canonical.Digest `json:"binding"`
	Approvers []string         `json:"approvers"`
	Quorum    int              `json:"quorum"`
	Expires   string           `json:"expires"`
}

// NewOutcome returns the outcome of a run, without a trace's file.
func NewOutcome(run *states.Run, o states.Outcome, head canonical.Digest, ledgerURL string) Outcome {
	d := Outcome{
		SchemaVersion: SchemaVersion,
		Type:          o.Type,
		State:         o.State,
		RunID:         run.ID(),
		Ledger:        ledgerURL,
		Head:          head,
		Note:          o.Note,
		Gate:          o.Gate,
		Code:          o.Code,
		Reason:        o.Reason,
		Effect:        o.Effect,
		Track:         trackOf(run, &o),
	}

	if h := run.HeldCall(); h != nil && o.Type == states.TypePending {
		d.Approval = &Wanted{
			Binding:   h.Binding,
			Approvers: append([]string{}, h.Approvers...),
			Quorum:    max(h.Quorum, 1),
			Expires:   h.Expires,
		}
	}

	facts := run.Facts()
	if facts.Discovered != nil {
		d.Servers = facts.Discovered.Servers
	}

	if facts.Planned != nil {
		d.Plan = facts.Planned.Plan
	}

	if raw := run.Raw(); raw != nil {
		isError := policy.IsError(raw)
		d.IsError, d.Raw = &isError, jsontext.Value(raw)
		if canonical.Check(raw, 0) != nil { // not strict JSON: encode it as a JSON string
			d.Raw = canonical.MustSorted(canonical.Text(raw))
		}
	}

	if typed := run.Structured(); typed != nil {
		d.Typed, d.Raw = typed, nil // show the typed result only; the trace has both
	}

	if facts.Summarized != nil {
		d.Summary = facts.Summarized.Items
	}

	return d
}
