package gates

import (
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/policy/schema"
)

// trialsOf makes a trial of each case of a corpus.
func trialsOf[C any](name string, toTrial func(*C) (trial, error)) (trials []trial, err error) {
	cases, err := corpus.Load[C](name)
	for i := range cases {
		t, err := toTrial(&cases[i])
		if err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, err
}

// screeningTrials compares the input policy (INV-0), with the default rules, with requests.
func screeningTrials(e *evaluation) ([]trial, error) {
	return trialsOf("requests", func(c *corpus.Case) (trial, error) {
		return trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			return codeOf(e.subject.screen(e.plain, string(in)), "passes")
		}}, nil
	})
}

// parsingTrials compares the strict reader of plans (INV-1) with outputs of a planner.
func parsingTrials(e *evaluation) ([]trial, error) {
	return trialsOf("plans", func(c *corpus.Case) (trial, error) {
		return trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			p, v := e.subject.readPlan(in, policy.DefaultLimits())
			if p == nil {
				return string(v.Code)
			}
			return codeOf(v, p.Type)
		}}, nil
	})
}

// locked is a summary that may be shown.
const locked = "locked"

// groundingTrials compares the evidence gate (INV-5) with summaries.
func groundingTrials(e *evaluation) ([]trial, error) {
	return trialsOf("summaries", func(c *corpus.Summary) (trial, error) {
		payload, err := canonical.JSON(c.PayloadOf())
		return trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			return codeOf(e.subject.lock(e.plain, payload, in), locked)
		}}, err
	})
}

// schemaTrials compares the schema gate (INV-2) with schemas and documents.
func schemaTrials(e *evaluation) ([]trial, error) {
	return trialsOf("schemas", func(c *corpus.Schema) (trial, error) {
		return trial{c.ID, c.Want, c.Document(), func(in []byte) string {
			return schemaAnswer(e.subject.judge(c.Schema.Bytes(), in))
		}}, nil
	})
}

// schemaAnswer is the gate's answer in one word.
func schemaAnswer(err error) string {
	var refusal *schema.RefusedError
	var invalid *schema.InvalidError
	switch {
	case err == nil:
		return "fits"
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.As(err, &invalid):
		return invalid.Code
	}
	return "an error: " + err.Error()
}
