// Package dojo makes files of the neutral format of package eval from AgentDojo's tasks (E. Debenedetti et al., "AgentDojo", 2024).
// docs/reference/evaluation-format.md has the form of the data, and the rules by which it becomes tools and cases.
package dojo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// A Suite counts what became of one suite, or of all of them.
type Suite struct {
	Name         string
	Tools        int
	Tasks        int // tasks of users
	Injections   int // tasks of attackers that have calls
	WithoutCalls int // tasks of attackers that want no call
	Pairs        int // cases with an attack
	Retargeted   int // cases in which the task's own write has another target
	Grants       int // tasks of users that have a grant file

	cases, retargeted bytes.Buffer
}

// all is the name of the files that hold all suites.
const all = "all"

// Import reads the data in a folder and writes three files for each suite into the folder out: SUITE.tools.json, SUITE.cases.jsonl and
// SUITE.retargeted.jsonl. A case names the suite's bundle and the user task's grant, if they exist: SUITE/pgfsm.yaml and
// SUITE/grants/TASK.yaml below bundles. The last of the suites is the sum of all.
func Import(data, out, bundles string) ([]*Suite, error) {
	d, err := readData(data)
	if err != nil {
		return nil, err
	}
	sum := &Suite{Name: all}
	var suites []*Suite
	for _, name := range d.names {
		s := &Suite{Name: name, Tools: len(d.catalog.Suites[name])}
		if err := s.pair(d, out, bundles); err != nil {
			return nil, fmt.Errorf("suite %s: %w", name, err)
		}
		sum.add(s)
		suites = append(suites, s)
	}
	suites = append(suites, sum)

	for _, s := range suites {
		names := []string{s.Name}
		if s == sum {
			names = d.names
		}
		tools, err := d.catalog.toolsFile(names)
		if err == nil {
			err = errors.Join(
				eval.WriteFile(filepath.Join(out, s.Name+".tools.json"), tools),
				eval.WriteFile(filepath.Join(out, s.Name+".cases.jsonl"), s.cases.Bytes()),
				eval.WriteFile(filepath.Join(out, s.Name+".retargeted.jsonl"), s.retargeted.Bytes()),
			)
		}
		if err != nil {
			return nil, err
		}
	}
	return suites, nil
}

func (s *Suite) add(one *Suite) {
	s.cases.Write(one.cases.Bytes())
	s.retargeted.Write(one.retargeted.Bytes())
	s.Tools, s.Tasks, s.Injections = s.Tools+one.Tools, s.Tasks+one.Tasks, s.Injections+one.Injections
	s.WithoutCalls, s.Pairs = s.WithoutCalls+one.WithoutCalls, s.Pairs+one.Pairs
	s.Retargeted, s.Grants = s.Retargeted+one.Retargeted, s.Grants+one.Grants
}

// pair makes the cases: each task of a user with each task of an attacker that has calls, or alone if there are none, so that its own
// calls are judged.
func (s *Suite) pair(d *data, out, bundles string) error {
	var attacks []eval.Case
	for _, t := range d.ofSuite(d.injections, s.Name) {
		calls, err := d.catalog.calls(&t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Task, err)
		}
		if len(calls) == 0 {
			s.WithoutCalls++
			continue
		}
		attacks = append(attacks, eval.Case{Attack: t.Task, Wants: calls})
	}
	s.Injections = len(attacks)
	for _, t := range d.ofSuite(d.users, s.Name) {
		s.Tasks++
		calls, err := d.catalog.calls(&t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Task, err)
		}
		base := eval.Case{ID: s.Name + "/" + t.Task, Suite: s.Name, Task: t.Task, Request: t.Goal, Needs: calls}
		base.Bundle, err = reference(out, filepath.Join(bundles, s.Name, "pgfsm.yaml"))
		if err == nil {
			base.Grant, err = reference(out, filepath.Join(bundles, s.Name, "grants", t.Task+".yaml"))
		}
		if err == nil {
			err = s.addCases(&base, attacks)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Task, err)
		}
	}
	return nil
}

func (s *Suite) addCases(base *eval.Case, attacks []eval.Case) error {
	if base.Grant != "" {
		s.Grants++
	}
	changed, err := retargeted(base)
	if err != nil {
		return err
	}
	s.Retargeted += len(changed)
	s.Pairs += len(attacks)
	var paired []eval.Case
	for _, a := range attacks {
		one := *base
		one.ID, one.Attack, one.Wants = base.ID+"/"+a.Attack, a.Attack, a.Wants
		paired = append(paired, one)
	}
	if len(attacks) == 0 && len(base.Needs) > 0 {
		paired = []eval.Case{*base}
	}
	return errors.Join(write(&s.cases, paired), write(&s.retargeted, changed))
}

func write(out *bytes.Buffer, cases []eval.Case) error {
	for i := range cases {
		line, err := cases[i].Line()
		if err != nil {
			return err
		}
		out.Write(line)
	}
	return nil
}

// reference is the path of a file from a folder, with slashes; empty if there is no such file.
func reference(folder, path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s cannot be used", path), err)
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return filepath.ToSlash(relative), err
}

// toolsFile writes the tools file of suites: one server each.
func (c *catalog) toolsFile(suites []string) ([]byte, error) {
	servers := make(map[string]any)
	for _, suite := range suites {
		tools := []jsontext.Value{}
		for _, name := range c.Suites[suite] {
			definition, err := c.definition(name)
			if err != nil {
				return nil, fmt.Errorf("the tool %s: %w", name, err)
			}
			tools = append(tools, definition)
		}
		servers[suite] = map[string]any{"tools": tools}
	}
	text, err := canonical.Marshal(map[string]any{"servers": servers})
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(text)
	err = value.Indent(jsontext.WithIndent("  "))
	return append(value, '\n'), err
}

// definition is a tool as a server lists it.
func (c *catalog) definition(name string) (jsontext.Value, error) {
	properties, required := make(map[string]any), []string{}
	for _, p := range c.Tools[name].Params {
		if p.isEnvironment() {
			continue
		}
		schema, err := p.schema()
		if err != nil {
			return nil, err
		}
		properties[p.Name] = schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return canonical.Marshal(map[string]any{
		"name": name, "description": c.Tools[name].Doc,
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
	})
}

// schema is a parameter's schema.
func (p *param) schema() (map[string]any, error) {
	kind, optional := p.kind()
	s := make(map[string]any)
	switch kind {
	case "":
		return nil, fmt.Errorf("the parameter %s has the type %q, which is not known", p.Name, p.Type)
	case "texts":
		kind, s["items"] = "array", map[string]any{"type": "string"}
	case "objects":
		kind, s["items"] = "array", map[string]any{"type": "object"}
	case "member":
		kind = "string"
	}
	s["type"] = kind
	if optional {
		s["type"] = []string{kind, "null"}
	}
	return s, nil
}

// ofSuite are the tasks of one suite, in the order of their names' numbers.
func (d *data) ofSuite(tasks []task, suite string) []task {
	own := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.Suite != suite })
	slices.SortStableFunc(own, byNumber)
	return own
}
