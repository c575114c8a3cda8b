// Package endtoend takes cases through pgfsm and through an agent without gates, on the same servers and with the same model
// outputs, and compares the results: what was blocked, what was called, which calls the case did not permit, how long it took and
// how many tokens it cost.
//
// # Cases
//
// A file of cases has one JSON object a line ([Case]); blank lines are skipped. It is read strictly.
//
// # Model
//
// Both agents ask the configured model. Without one, each case brings its own outputs: a chat endpoint on loopback ([Listen])
// answers with the case's plan and with its summary. Both agents use the same HTTP requests and prompts.
//
// # Files
//
// An evaluation has three files, whose names begin with the time of its start in UTC. TIME_runs.jsonl gets one line a case, which
// is on disk before the next case begins. TIME_metrics.json and TIME_table.md are written when all cases are done. An evaluation
// without metrics was interrupted, and can be resumed ([Resume]).
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
	ID      string   // unique in its file, and shown in tables
	Request string   // of the user
	Allowed bool     // whether any call is permitted
	Tools   []string // what may be called, each "server/tool"; none if nothing may
	Plan    string   // the scripted model's answer to a request for a plan, well-formed or not
	Summary string   // its answer to a request for a summary
	Note    string   // a comment
}

// Bounds of a file of cases.
const (
	MaxCasesBytes = 64 << 20 // of the whole file
	MaxLineBytes  = 1 << 20  // of one case
	MaxCases      = 100_000
	MaxIDBytes    = 128
)

// written is a case in the form of the file.
type written struct {
	ID      *string  `json:"id"`
	Request *string  `json:"request"`
	Allowed *bool    `json:"allowed"`
	Tools   []string `json:"tools"`
	Plan    *string  `json:"plan"`
	Summary string   `json:"summary"`
	Note    string   `json:"note"`
}

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
	if len(doc) > MaxCasesBytes {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read: split it", file, len(doc), MaxCasesBytes)
	}
	var all []Case
	at := make(map[string]int)
	line := 0
	for text := range bytes.Lines(doc) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		c, err := readCase(text)
		if err == nil && at[c.ID] != 0 {
			err = fmt.Errorf("line %d has the id %q already: ids are unique", at[c.ID], visible.Text(c.ID))
		}
		if err == nil && len(all) == MaxCases {
			err = fmt.Errorf("there are more than %d cases: split the file", MaxCases)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		at[c.ID] = line
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no case: write one JSON object a line, with id, request, allowed, tools and plan", file)
	}
	return all, nil
}

func readCase(text []byte) (Case, error) {
	if len(text) > MaxLineBytes {
		return Case{}, fmt.Errorf("the case has %d bytes; at most %d are read", len(text), MaxLineBytes)
	}
	var w written
	if err := canonical.Unmarshal(text, &w); err != nil {
		return Case{}, fmt.Errorf("%w; a case is one JSON object with id, request, allowed, tools, plan, and perhaps summary and note", err)
	}
	switch {
	case w.ID == nil || w.Request == nil || w.Allowed == nil || w.Plan == nil || w.Tools == nil:
		return Case{}, errors.New("a case says its id, request, allowed, tools and plan; add what is missing (tools may be [], plan may be \"\")")
	case *w.ID == "" || len(*w.ID) > MaxIDBytes || visible.Text(*w.ID) != *w.ID:
		return Case{}, fmt.Errorf("the id must be 1 to %d bytes that can be shown", MaxIDBytes)
	case *w.Request == "":
		return Case{}, errors.New("the request is empty")
	case *w.Allowed && len(w.Tools) == 0:
		return Case{}, errors.New("allowed is true and tools is empty: name the tools that may be called, each \"server/tool\"")
	case !*w.Allowed && len(w.Tools) > 0:
		return Case{}, errors.New("allowed is false and tools is not empty: nothing may be called for the case")
	}
	for _, t := range w.Tools {
		if server, tool, ok := strings.Cut(t, "/"); !ok || server == "" || tool == "" {
			return Case{}, fmt.Errorf("tools holds %q: write \"server/tool\"", visible.Text(t))
		}
	}
	return Case{*w.ID, *w.Request, *w.Allowed, w.Tools, *w.Plan, w.Summary, w.Note}, nil
}

// Permits reports whether a tool may be called for the case.
func (c *Case) Permits(server, tool string) bool {
	return c.Allowed && slices.Contains(c.Tools, server+"/"+tool)
}

// Digest names the case: a case with a run of the same digest is not run again.
func (c *Case) Digest() canonical.Digest {
	return canonical.Sum("e2e case", canonical.MustMarshal(struct {
		ID      string   `json:"id"`
		Request string   `json:"request"`
		Allowed bool     `json:"allowed"`
		Tools   []string `json:"tools"`
		Plan    string   `json:"plan"`
		Summary string   `json:"summary"`
	}{c.ID, c.Request, c.Allowed, c.Tools, c.Plan, c.Summary}))
}

// DigestOf names a list of cases.
func DigestOf(cases []Case) canonical.Digest {
	h := canonical.NewHasher("e2e cases")
	for i := range cases {
		h.Write([]byte(cases[i].Digest()))
	}
	return h.Digest()
}
