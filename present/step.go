package present

import (
	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/traces"
)

// A Step is one step of a run, with the verdict that led to it.
type Step struct {
	Seq     int
	At      string
	From    string
	Trigger string
	To      string
	Verdict policy.Verdict // zero if nothing was judged
}

// NewSteps returns the steps of a run's trace.
func NewSteps(recorded []traces.Step) []Step {
	var all []Step
	for i := range recorded {
		s := &recorded[i]
		var fact struct {
			Verdict policy.Verdict `json:"verdict"`
		}
		_ = json.Unmarshal(s.Facts, &fact) // a fact without a verdict has none to show
		all = append(all, Step{s.Seq, s.At, string(s.From), string(s.Trigger), string(s.To), fact.Verdict})
	}
	return all
}
