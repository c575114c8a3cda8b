package gates

import (
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/policy/schema"
)

// screeningTrials compares the input policy (INV-0), with the default rules, with requests.
func screeningTrials(e *evaluation) (string, []trial, error) {
	cases, err := corpus.Load[corpus.Request]("requests")
	var trials []trial
	for _, c := range cases {
		trials = append(trials, trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			return codeOf(e.subject.screen(e.plain, string(in)), "passes")
		}})
	}
	return "requests: 20 that must be refused, each in 15 disguises, 35 that must pass, and some of odd size or encoding", trials, err
}

// parsingTrials compares the strict reader of plans (INV-1) with outputs of a planner.
func parsingTrials(e *evaluation) (string, []trial, error) {
	cases, err := corpus.Load[corpus.Plan]("plans")
	var trials []trial
	for _, c := range cases {
		trials = append(trials, trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			p, v := e.subject.readPlan(in, policy.DefaultLimits())
			if p == nil {
				return string(v.Code)
			}
			return codeOf(v, p.Type)
		}})
	}
	return "outputs of a planner, with the plan or the code that each must get", trials, err
}

// locked is a summary that may be shown.
const locked = "locked"

// groundingTrials compares the evidence gate (INV-5) with summaries.
func groundingTrials(e *evaluation) (string, []trial, error) {
	cases, err := corpus.Load[corpus.Summary]("summaries")
	var trials []trial
	for _, c := range cases {
		payload, err := canonical.JSON(c.PayloadOf())
		if err != nil {
			return "", nil, err
		}
		trials = append(trials, trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			return codeOf(e.subject.lock(e.plain, payload, in), locked)
		}})
	}
	return "summaries of a typed payload, and the verdict that the evidence gate must give", trials, err
}

// schemaTrials compares the schema gate (INV-2) with schemas and documents.
func schemaTrials(e *evaluation) (string, []trial, error) {
	cases, err := corpus.Load[corpus.Schema]("schemas")
	var trials []trial
	for _, c := range cases {
		trials = append(trials, trial{c.ID, c.Want, c.Document(), func(in []byte) string {
			return schemaAnswer(e.subject.judge(c.Schema.Bytes(), in))
		}})
	}
	return "schemas and documents, and whether each may be used", trials, err
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
