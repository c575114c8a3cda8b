package gates

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// A groundCase is a typed payload, a summary of it, and the answer of the evidence gate: locked, or a code.
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

// grounding compares the evidence gate (INV-5) with a table.
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
		trials = append(trials, trial{c.ID, c.Want, input, func(in []byte) string {
			if v := e.subject.lock(b, payload, in); !v.Allows() {
				return string(v.Code)
			}
			return locked
		}})
	}
	return e.table("summaries of a typed payload, and the verdict that the evidence gate must give", trials), nil
}

// groundingFuzz judges generated summaries of generated payloads.
func groundingFuzz(e *evaluation) (Suite, error) {
	b, err := policy.Compile(content())
	if err != nil {
		return Suite{}, err
	}
	f := newFuzzer(e.options.Seed, groundClasses(), func(s *sample) judgement {
		if v := e.subject.lock(b, s.payload, s.input); !v.Allows() {
			return judgement{s.want, refused, v.Code}
		}
		return judgement{want: s.want, got: locked}
	})
	return e.fuzz(f, max(e.options.Plans/groundingShare, 1), "generated summaries"), nil
}
