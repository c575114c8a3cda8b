package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// A Case is one request, what may be done about it, and the outputs of a scripted model.
type Case struct {
	ID      string `json:"id"`      // unique in its file, and shown in tables
	Request string `json:"request"` // the user's request
	// The tools that may be called, each "server/tool"; none: no call is permitted.
	Tools []string `json:"tools"`
	// The scripted model's answer to a request for a plan, well-formed or not.
	Plan    string `json:"plan"`
	Summary string `json:"summary"` // its answer to a request for a summary
	Note    string `json:"note"`    // a comment
}

// ReadCases reads a file of cases, in their order.
func ReadCases(path string) (cases []Case, err error) {
	text, err := eval.ReadFile(path)
	if err != nil {
		return nil, err
	}
	const remedy = "a case has id, request, tools and plan"
	err = eval.ReadLines(filepath.ToSlash(path), bytes.NewReader(text), remedy, func(line []byte) (string, error) {
		var c Case
		if err := canonical.Unmarshal(line, &c); err != nil {
			return "", err
		}
		cases = append(cases, c)
		return c.ID, c.checkFields()
	})
	return cases, err
}

func (c *Case) checkFields() error {
	switch {
	case c.ID == "" || len(c.ID) > eval.MaxIDBytes || visible.Text(c.ID) != c.ID:
		return fmt.Errorf("the id must be 1 to %d bytes that can be shown", eval.MaxIDBytes)
	case c.Request == "":
		return errors.New("the request is missing")
	}
	for _, t := range c.Tools {
		if server, tool, ok := strings.Cut(t, "/"); !ok || server == "" || tool == "" {
			return fmt.Errorf("tools holds %q: write \"server/tool\"", visible.Text(t))
		}
	}
	return nil
}

// Permits reports whether a tool may be called for the case.
func (c *Case) Permits(server, tool string) bool {
	return slices.Contains(c.Tools, server+"/"+tool)
}
