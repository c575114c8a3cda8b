package main

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/evidence"
	"pgfsm/states"
)

// document is the --json form of a run. docs/reference/agent-contract.md describes it.
type document struct {
	SchemaVersion int                   `json:"schema_version"`
	Type          string                `json:"type"`
	State         string                `json:"state"`
	RunID         string                `json:"run_id"`
	Trace         *string               `json:"trace,omitzero"`  // nil: the run is in the ledger
	Ledger        string                `json:"ledger,omitzero"` // its URL
	Head          canonical.Digest      `json:"head"`
	Approval      *approval             `json:"approval,omitzero"`
	Plan          jsontext.Value        `json:"plan,omitzero"`
	Typed         jsontext.Value        `json:"typed,omitzero"`
	Raw           jsontext.Value        `json:"raw,omitzero"`
	IsError       *bool                 `json:"is_error,omitzero"`
	Summary       []evidence.Located    `json:"summary,omitzero"`
	Note          string                `json:"note,omitzero"`
	Gate          policy.Gate           `json:"gate,omitzero"`
	Code          policy.Code           `json:"code,omitzero"`
	Reason        string                `json:"reason,omitzero"`
	Effect        states.Effect         `json:"effect,omitzero"`
	Servers       []states.ServerStatus `json:"servers,omitzero"`
}

// An approval is what a held run waits for.
type approval struct {
	Binding   canonical.Digest `json:"binding"`
	Approvers []string         `json:"approvers"`
	Quorum    int              `json:"quorum"`
	Expires   string           `json:"expires"`
}

// kept is where a run is recorded: in a trace or in a ledger.
type kept struct{ trace, ledger string }

func newDocument(run *states.Run, o states.Outcome, where kept, head canonical.Digest) document {
	d := document{
		SchemaVersion: schemaVersion, Type: o.Type, State: o.State, RunID: run.ID(), Ledger: where.ledger, Head: head,
		Note: o.Note, Gate: o.Gate, Code: o.Code, Reason: o.Reason, Effect: o.Effect,
	}
	if where.ledger == "" {
		d.Trace = &where.trace
	}
	if h := run.Held(); h != nil && o.Type == states.TypePending {
		d.Approval = &approval{
			Binding: h.Binding, Approvers: append([]string{}, h.Approvers...), Quorum: max(h.Quorum, 1), Expires: h.Expires,
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
		d.IsError = &isError
		d.Raw = asJSON(raw)
	}
	if typed := run.Structured(); typed != nil {
		d.Typed, d.Raw = typed, nil // the typed content is what was asked for; the trace has both
	}
	if facts.Summarized != nil {
		d.Summary = facts.Summarized.Items
	}
	return d
}

// asJSON returns raw as it is where it is strict JSON, and otherwise as a JSON string.
func asJSON(raw []byte) jsontext.Value {
	if canonical.Check(raw, 0) == nil {
		return raw
	}
	return canonical.MustSorted(canonical.Text(raw))
}

// exitCode says what the outcome means to a script.
func exitCode(o states.Outcome) int {
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary, states.TypeFinalAnswer:
		return exitYes
	case states.TypeBlocked:
		return exitNo
	case states.TypePending:
		return exitPending
	}
	return exitCould
}
