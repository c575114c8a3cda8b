package gates

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/schema"
)

// A schemaCase is a schema, a document, and the answer of the schema gate: fits, invalid, or the code by which the schema or the
// document is refused.
type schemaCase struct {
	ID      string         `json:"id"`
	Want    string         `json:"want"`
	Schema  written        `json:"schema"`
	Doc     jsontext.Value `json:"doc"`
	written                // the document, where it is not JSON or large
}

// fitting is a document that its schema accepts.
const fitting = "fits"

// schemas compares the schema gate (INV-2) with a table.
func schemas(e *evaluation) (Suite, error) {
	cases, err := load[schemaCase]("schema")
	if err != nil {
		return Suite{}, err
	}
	var trials []trial
	for i := range cases {
		c := &cases[i]
		of, err := c.Schema.bytes()
		if err != nil {
			return Suite{}, fmt.Errorf("%s: %w", c.ID, err)
		}
		doc, err := c.bytes()
		if err != nil {
			return Suite{}, fmt.Errorf("%s: %w", c.ID, err)
		}
		if len(c.Doc) > 0 {
			doc = c.Doc
		}
		trials = append(trials, trial{c.ID, c.Want, doc, func(in []byte) string { return schemaAnswer(e.subject.judge(of, in)) }})
	}
	return e.table("schemas and documents, and whether each may be used", trials), nil
}

// schemaAnswer is the gate's answer in one word.
func schemaAnswer(err error) string {
	var refusal *schema.RefusedError
	var invalid *schema.InvalidError
	switch {
	case err == nil:
		return fitting
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.As(err, &invalid):
		return invalid.Code
	}
	return "an error: " + err.Error()
}
