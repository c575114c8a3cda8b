package main

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/evidence"
	"pgfsm/states"
)

// document is the --json form of a run. docs/agent-contract.md describes it.
type document struct {
	SchemaVersion int                   `json:"schema_version"`
	Type          string                `json:"type"`
	State         string                `json:"state"`
	RunID         string                `json:"run_id"`
	Trace         string                `json:"trace"`
	Head          canonical.Digest      `json:"head"`
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

func newDocument(run *states.Run, o states.Outcome, trace string, head canonical.Digest) document {
	d := document{
		SchemaVersion: schemaVersion, Type: o.Type, State: o.State, RunID: run.ID(), Trace: trace, Head: head,
		Note: o.Note, Gate: o.Gate, Code: o.Code, Reason: o.Reason, Effect: o.Effect,
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
