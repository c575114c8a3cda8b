package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// A Case is one request, what may be done about it, and the outputs of a scripted model.
type Case struct {
	ID      string   `json:"id"`      // unique in its file, and shown in tables
	Request string   `json:"request"` // the user's request
	Allowed bool     `json:"allowed"` // whether any call is permitted
	Tools   []string `json:"tools"`   // the tools that may be called, each "server/tool"; none: no tool may
	Plan    string   `json:"plan"`    // the scripted model's answer to a request for a plan, well-formed or not
	Summary string   `json:"summary"` // its answer to a request for a summary
	Note    string   `json:"note"`    // a comment
}

// Bounds of a file of cases.
const (
	MaxCasesBytes = 64 << 20
	MaxIDBytes    = 128
)

// ReadCasesFile reads a file of cases. It decides nothing about what may run, so any user may have written it.
func ReadCasesFile(path string) ([]Case, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > MaxCasesBytes:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read: split it", path, info.Size(), MaxCasesBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReadCases(path, text)
}

// ReadCases reads a file of cases, in their order. The error names the file, the line and what to do.
func ReadCases(file string, doc []byte) ([]Case, error) {
	var all []Case
	line := 0
	for text := range bytes.Lines(doc) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var c Case
		err := canonical.Unmarshal(text, &c)
		if err == nil {
			err = c.check()
		}
		if err == nil && slices.ContainsFunc(all, func(o Case) bool { return o.ID == c.ID }) {
			err = fmt.Errorf("there is a case %q already: ids are unique", visible.Text(c.ID))
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no case: write one JSON object a line, with id, request, allowed, tools and plan", file)
	}
	return all, nil
}

func (c *Case) check() error {
	switch {
	case c.ID == "" || len(c.ID) > MaxIDBytes || visible.Text(c.ID) != c.ID:
		return fmt.Errorf("the id must be 1 to %d bytes that can be shown", MaxIDBytes)
	case c.Request == "":
		return errors.New("the request is missing")
	case c.Allowed != (len(c.Tools) > 0):
		return errors.New("allowed and tools contradict each other: if a call is permitted, name the tools, each \"server/tool\"")
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
	return c.Allowed && slices.Contains(c.Tools, server+"/"+tool)
}
