package present

import (
	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/states"
	"pgfsm/traces"
)

// Steps holds the recorded steps of a run. Every member is always present.
type Steps struct {
	SchemaVersion int                `json:"schema_version"`
	Run           string             `json:"run"`
	UnderWay      bool               `json:"under_way"` // the run continues: further steps follow
	Steps         []Step             `json:"steps"`
	Summary       []evidence.Located `json:"summary"` // the result's summary, for auditors; empty without one
}

// A Step is one step of a run, with the verdict that led to it.
type Step struct {
	Seq     int            `json:"seq"`
	At      string         `json:"at"`
	From    string         `json:"from"`
	Trigger string         `json:"trigger"`
	To      string         `json:"to"`
	Verdict policy.Verdict `json:"verdict"` // empty if nothing was judged
}

// NewSteps returns the steps of a run. The summary repeats parts of the result, so only auditors get it.
func NewSteps(run string, recorded []traces.Step, underWay, auditor bool) Steps {
	d := Steps{SchemaVersion: SchemaVersion, Run: run, UnderWay: underWay, Steps: []Step{}, Summary: []evidence.Located{}}
	for i := range recorded {
		s := &recorded[i]
		var fact struct {
			Verdict policy.Verdict     `json:"verdict"`
			Items   []evidence.Located `json:"items"`
		}
		_ = json.Unmarshal(s.Facts, &fact) // other facts have no verdict, so it stays empty
		d.Steps = append(d.Steps, Step{s.Seq, s.At, string(s.From), string(s.Trigger), string(s.To), fact.Verdict})
		if auditor && s.To == states.Summarized {
			d.Summary = append(d.Summary, fact.Items...)
		}
	}
	return d
}
