package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// repeatedFacts holds the parts of facts that events repeat.
type repeatedFacts struct {
	Approvers  []string         `json:"approvers"`
	Arguments  jsontext.Value   `json:"arguments"`
	Binding    canonical.Digest `json:"binding"`
	Bundle     canonical.Digest `json:"bundle"`
	Bytes      int              `json:"bytes"`
	Condition  string           `json:"condition"`
	Definition canonical.Digest `json:"definition"`
	Expires    string           `json:"expires"`
	Mode       string           `json:"mode"`
	Permit     canonical.Digest `json:"permit"`
	Plan       jsontext.Value   `json:"plan"`
	Policy     string           `json:"policy"`
	Quorum     int              `json:"quorum"`
	Score      int              `json:"score"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`

	Trace *states.TraceContext `json:"trace"`
	Bound struct {
		Expires string `json:"expires"`
	} `json:"bound"`
	Verdict struct {
		Outcome policy.Outcome `json:"outcome"`
	} `json:"verdict"`
}

// repeated lists the states whose facts events repeat.
var repeated = []fsm.State{
	states.Planned, states.Validated, states.Assessed, states.Pending, states.Permitted, states.Dispatched,
	states.Executed, states.Blocked,
}

// compareSteps compares the events with the steps.
func (s *runVerifier) compareSteps(steps []traces.Step) error {
	run := s.row.RunID
	reached := make(map[fsm.State]*repeatedFacts, len(repeated))
	var votes []policy.Vote

	for i := range steps {
		step := &steps[i]
		if step.From == states.Pending {
			var d states.Decided
			if json.Unmarshal(step.Event, &d) == nil && d.Happened == "decided" {
				votes = d.Votes
			}
		}
		if !slices.Contains(repeated, step.To) {
			continue
		}
		f := new(repeatedFacts)
		if err := json.Unmarshal(step.Facts, f); err != nil {
			return newFault("requests", run, "its facts are not those of its state: "+canonical.Explain(err).Error())
		}
		reached[step.To] = f
	}

	if what := s.firstDifference(reached, votes); what != "" {
		return newFault("entries", "of run "+run, what+" is not what the steps say")
	}

	return nil
}

// firstDifference names the first event that differs from the steps; empty if none does.
func (s *runVerifier) firstDifference(reached map[fsm.State]*repeatedFacts, votes []policy.Vote) string {
	if v := reached[states.Validated]; (v != nil) != (s.first.Call != nil) ||
		v != nil && !s.first.Call.matchesPlan(v, reached[states.Planned]) {
		return "the call of " + string(RequestCreated)
	}

	if a := reached[states.Assessed]; a != nil {
		if s.scored == nil || s.scored.Mode != a.Mode || s.scored.Score != a.Score {
			return string(RiskScored)
		}
		if d := s.judged; d == nil || d.Policy != a.Policy || d.Condition != a.Condition ||
			d.Outcome != string(a.Verdict.Outcome) {
			return string(DecisionMade)
		}
	}

	// What approvers saw must be what the machine held.
	h, a := reached[states.Pending], reached[states.Assessed]
	if (h != nil) != (s.asked != nil) ||
		h != nil && (a == nil || s.asked.Binding != h.Binding || s.asked.Expires != h.Bound.Expires ||
			!slices.Equal(s.asked.Approvers, a.Approvers) || s.asked.Quorum != max(a.Quorum, 1)) {
		return string(ApprovalRequested)
	}

	decided := cmp.Or(reached[states.Permitted], reached[states.Blocked])
	if again := s.judgedAgain; decided != nil && again != nil &&
		cmp.Or(again.Bundle, s.row.Bundle) != cmp.Or(decided.Bundle, s.row.Bundle) {
		return string(DecisionMade)
	}
	if votes != nil && !slices.EqualFunc(votes, s.votes, policy.Vote.Equal) {
		return "the votes"
	}

	// The call that was sent must be the one that was permitted.
	d := reached[states.Dispatched]
	if (d != nil) != (s.sent != nil) ||
		d != nil && (d.Permit != s.sent.Permit || s.sent.Trace != s.traceOf(reached[states.Permitted])) {
		return string(ProxySent)
	}
	if x := reached[states.Executed]; (x != nil) != (s.returned != nil) || x != nil && x.Bytes != s.returned.Bytes {
		return string(ToolResult)
	}

	return ""
}

// traceOf returns the trace id that the event of the call must name. Only an approved call has a
// trace of its own; other calls share the trace of their request.
func (s *runVerifier) traceOf(permitted *repeatedFacts) string {
	if s.asked == nil || permitted == nil {
		return ""
	}
	return permitted.Trace.TraceID()
}

// matchesPlan reports whether the call equals the one that was planned and validated.
func (c *plannedCall) matchesPlan(validated, planned *repeatedFacts) bool {
	var arguments string
	var plan struct {
		Args jsontext.Value `json:"args"`
	}
	return planned != nil && json.Unmarshal(validated.Arguments, &arguments) == nil &&
		json.Unmarshal(planned.Plan, &plan) == nil &&
		c.Server == validated.Server && c.Tool == validated.Tool && c.Definition == validated.Definition &&
		string(canonical.Sum(kindArguments, c.Args)) == arguments && bytes.Equal(c.Args, plan.Args)
}

// differingColumn names the first column in which two rows differ, with both values; empty if they
// are equal.
func differingColumn[T any](want, have T) string {
	w, h := reflect.ValueOf(want), reflect.ValueOf(have)
	for i := range w.NumField() {
		a, b := w.Field(i), h.Field(i)
		bothEmpty := a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 // a nil list equals an empty one
		if !bothEmpty && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return fmt.Sprintf("%s (%.100q, should be %.100q)", strings.ToLower(w.Type().Field(i).Name),
				fmt.Sprint(b), fmt.Sprint(a))
		}
	}
	return ""
}
