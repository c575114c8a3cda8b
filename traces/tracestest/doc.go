// Package tracestest changes traces for tests and recomputes their hashes, like an attacker who can
// write the folder. docs/reference/trace-format.md describes the hashes.
package tracestest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Members are the members of a JSON object.
type Members = map[string]jsontext.Value

// A Doc is the document of a trace.
type Doc struct {
	Members Members // but for the steps and the head
	Steps   []Members
}

// Parse reads a trace.
func Parse(doc []byte) (*Doc, error) {
	d := new(Doc)
	if err := json.Unmarshal(doc, &d.Members); err != nil {
		return nil, err
	}
	return d, json.Unmarshal(d.Members["steps"], &d.Steps)
}

// Replace replaces a text once in the first of some members that have it.
func Replace(name, old, by string, in ...Members) error {
	for _, m := range in {
		if bytes.Contains(m[name], []byte(old)) {
			m[name] = bytes.Replace(m[name], []byte(old), []byte(by), 1)
			return nil
		}
	}
	return fmt.Errorf("no member %s has %s", name, old)
}

// Seal numbers the steps, computes every hash, and returns the document.
func (d *Doc) Seal() ([]byte, error) {
	var bundle Members
	if err := json.Unmarshal(d.Members["bundle"], &bundle); err != nil {
		return nil, errors.Join(errors.New("bundle"), err)
	}
	prev := canonical.Sum("trace header", canonical.MustMarshal(Members{
		"bundle": bundle["digest"], "format": d.Members["format"], "machine": d.Members["machine"],
		"request": d.Members["request"], "run_id": d.Members["run_id"],
	}))
	for i, step := range d.Steps {
		step["seq"] = canonical.MustMarshal(i)
		step["prev"] = canonical.MustMarshal(prev)
		delete(step, "hash")
		prev = canonical.Sum("trace step", canonical.MustMarshal(step))
		step["hash"] = canonical.MustMarshal(prev)
	}
	d.Members["steps"] = canonical.MustMarshal(d.Steps)
	d.Members["head"] = canonical.MustMarshal(canonical.Sum("trace head", canonical.MustMarshal(Members{
		"last": canonical.MustMarshal(prev), "outcome": d.Members["outcome"],
	})))
	return canonical.Marshal(d.Members)
}
