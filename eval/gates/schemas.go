package gates

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/schema"
)

// A schemaCase is a schema, a document, and what must come of the two: fits, invalid, or the code by which one is refused.
type schemaCase struct {
	ID      string         `json:"id"`
	Want    string         `json:"want"`
	Schema  written        `json:"schema"`
	Doc     jsontext.Value `json:"doc"`
	written                // the document, where it is not JSON or large
}

// fitting is a document that its schema takes.
const fitting = "fits"

// schemas holds the schema gate (INV-2) to schemas and documents of every kind.
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
		trials = append(trials, trial{
			id: c.ID, want: c.Want, input: doc,
			got: func(in []byte) string { return schemaSays(e.subject.judge(of, in)) },
			known: func(in []byte, got string) bool {
				is := naive(of, in)
				return c.Want == fitting && is == valid || got == fitting && is == invalid
			},
		})
	}
	return e.table("schemas and documents, and whether each may be used", trials), nil
}

// schemaSays is the gate's word for what it thinks of a document, or of the schema.
func schemaSays(err error) string {
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
