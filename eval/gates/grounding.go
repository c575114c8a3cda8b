package gates

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// A groundCase is a typed payload, a summary of it, and what the lock must say: locked, or a code.
type groundCase struct {
	ID      string         `json:"id"`
	Want    string         `json:"want"`
	Payload jsontext.Value `json:"payload"`
	written                // the summary
}

// locked is a summary that may be shown.
const locked = "locked"

// groundPayload is the payload of the cases that give none.
const groundPayload = `{` +
	`"title":"Log Retention",` +
	`"body":"Security logs are kept for 400 days. Access logs are kept for 90 days. The owner is bob@example.com since 2024-03-05.",` +
	`"count":12,` +
	`"rate":"10.5%",` +
	`"ok":true,` +
	`"price":"$1,000",` +
	`"tags":["alpha","beta gamma delta"],` +
	`"nested":{"deep":{"note":"Policy policy-002 replaces policy-001 in full."}},` +
	`"markup":"see <b>bold</b> text here",` +
	`"uni":"Die Frist beträgt 30 Tage im Jahr.",` +
	`"money":"It costs 10 million euros a year.",` +
	`"num":"Between 10 and 20 people may enter at once."` + `}`

// grounding holds summaries to the lock on evidence (INV-5).
func grounding(e *evaluation) (Suite, error) {
	cases, err := load[groundCase]("grounding")
	if err != nil {
		return Suite{}, err
	}
	b, err := policy.Compile(content())
	if err != nil {
		return Suite{}, err
	}
	var trials []trial
	for i := range cases {
		c := &cases[i]
		if len(c.Payload) == 0 {
			c.Payload = jsontext.Value(groundPayload)
		}
		payload, err := canonical.JSON(c.Payload)
		if err != nil {
			return Suite{}, err
		}
		input, err := c.bytes()
		if err != nil {
			return Suite{}, err
		}
		trials = append(trials, e.grounded(b, c.ID, c.Want, payload, input))
	}
	return e.table("summaries of a typed payload, and what the lock must say of them", trials), nil
}

// grounded is one summary as a trial.
func (e *evaluation) grounded(b *policy.Bundle, id, want string, payload, summary []byte) trial {
	return trial{
		id: id, want: want, input: summary,
		got: func(in []byte) string {
			if v := e.subject.lock(b, payload, in); !v.Allows() {
				return string(v.Code)
			}
			return locked
		},
		known: func(in []byte, got string) bool { return got == locked && want != locked && refutable(payload, in) },
	}
}

// refutable reports whether a summary certainly may not be shown: it is no strict JSON, or evidence of it stands in no value of
// the payload, or a run of digits of a claim is no run of digits of its evidence. Of a summary that is not refutable in this
// way nothing is known.
func refutable(payload, summary []byte) bool {
	v, strict := decodeStrictly(summary, 1<<20)
	if !strict {
		return true
	}
	whole, _ := v.(map[string]any)
	items, isList := whole["items"].([]any)
	if !isList || len(whole) != 1 || len(items) == 0 {
		return true
	}
	of, ok := decodeStrictly(payload, policy.DefaultResultBytes)
	if !ok {
		return false
	}
	for _, item := range items {
		o, _ := item.(map[string]any)
		claim, hasClaim := o["claim"].(string)
		evidence, hasEvidence := o["evidence"].(string)
		if len(o) != 2 || !hasClaim || !hasEvidence || !stands(of, evidence) {
			return true
		}
		runs := digitRuns(evidence)
		for run := range digitRuns(claim) { // any that is missing refutes, in any order
			if !runs[run] {
				return true
			}
		}
	}
	return false
}

// stands reports whether a text is a part of any value.
func stands(in any, evidence string) bool {
	switch v := in.(type) {
	case string:
		return strings.Contains(v, evidence)
	case json.Number:
		return string(v) == evidence
	case bool:
		return v && evidence == "true" || !v && evidence == "false"
	case []any:
		for _, element := range v {
			if stands(element, evidence) {
				return true
			}
		}
	case map[string]any:
		for _, member := range v { // any that holds it will do, in any order
			if stands(member, evidence) {
				return true
			}
		}
	}
	return false
}

// digitRuns are the longest runs of ASCII digits of a text.
func digitRuns(s string) map[string]bool {
	runs := make(map[string]bool)
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r < '0' || r > '9' }) {
		runs[run] = true
	}
	return runs
}
