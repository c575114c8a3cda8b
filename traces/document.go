package traces

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// document holds the members of a trace as they are in the file.
type document struct {
	Bundle  jsontext.Value   `json:"bundle"`
	Format  jsontext.Value   `json:"format"`
	Head    jsontext.Value   `json:"head"`
	Machine jsontext.Value   `json:"machine"`
	Outcome jsontext.Value   `json:"outcome"`
	Request jsontext.Value   `json:"request"`
	RunID   jsontext.Value   `json:"run_id"`
	Steps   []jsontext.Value `json:"steps"`
	Unknown jsontext.Value   `json:",embed"`
}

// parseDocument finds the members of a trace. A document without our format is not a trace; a trace
// without one of the other members was changed.
func parseDocument(doc []byte) (*document, error) {
	d := new(document)
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, locateError(err)
	}
	var format string
	if err := decodeStrictly(d.Format, &format); err != nil || format != Format {
		return nil, fmt.Errorf("not a trace: its format is not %q", Format)
	}

	for _, m := range []struct {
		place, name string
		value       jsontext.Value
	}{
		{"header", "bundle", d.Bundle}, {"header", "machine", d.Machine}, {"header", "request", d.Request},
		{"header", "run_id", d.RunID}, {"outcome", "outcome", d.Outcome}, {"outcome", "head", d.Head},
	} {
		if m.value == nil {
			return nil, &TamperError{Place: m.place, What: "it has no member " + m.name}
		}
	}

	for name := range canonical.Members(d.Unknown) {
		return nil, &TamperError{Place: "header", What: "it has a member " + clipText(strconv.Quote(name))}
	}

	return d, nil
}

// locateError turns an error of the decoder into one that names the step, if the error is in a
// step.
func locateError(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if seq, inside := stepAt(syntactic.JSONPointer); inside {
			return &TamperError{Place: "step", Seq: seq, What: canonical.Explain(err).Error()}
		}
		return canonical.Explain(err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer == "/steps" {
		return &TamperError{Place: "step", Seq: 0, What: "steps is not a list"}
	}
	return errors.New("not a trace: it is not a JSON object")
}

// stepAt returns the number of the step that a pointer leads into.
func stepAt(p jsontext.Pointer) (seq int, inside bool) {
	path, inside := strings.CutPrefix(string(p), "/steps/")
	number, _, _ := strings.Cut(path, "/")
	seq, err := strconv.Atoi(number)
	return seq, inside && err == nil
}

// decodeStrictly reads a value that must have exactly the members of v: v must encode to raw in
// canonical form. Traces that this package wrote are in that form.
func decodeStrictly(raw []byte, v any) error {
	err := canonical.Unmarshal(raw, v)
	if err != nil || bytes.Equal(canonical.MustSorted(v), raw) {
		return err
	}
	c, err := canonical.JSON(raw)
	if err != nil {
		return err
	}
	if err := canonical.Unmarshal(c, v); err != nil {
		return err
	}
	if !bytes.Equal(canonical.MustSorted(v), c) {
		return errors.New("it is not in its one form: a member is missing, or has another type")
	}
	return nil
}
