package explain

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"pgfsm/internal/config"
	"pgfsm/policy"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A Report is the outcome of policy tests.
type Report struct {
	OK        bool     `json:"ok"`
	Tests     []Result `json:"tests"`
	Uncovered Coverage `json:"uncovered"`
}

// A Result is the outcome of one test.
type Result struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	OK         bool   `json:"ok"`
	Got        string `json:"got"`
	Want       string `json:"want"`
	Gate       string `json:"gate"` // the deciding gate
	Policy     string `json:"policy,omitzero"`
	WantPolicy string `json:"want_policy,omitzero"`
	Reason     string `json:"reason"`
	Facts      Facts  `json:"known"`
}

// Coverage lists the policies and risk rules that no test reaches.
type Coverage struct {
	Policies []string `json:"policies_without_a_test"`
	Rules    []string `json:"risk_rules_without_a_test"`
}

// Test judges the calls of test files. A folder stands for the *tests.yaml and *_test.yaml files in
// its tree.
func (e *Explainer) Test(paths []string, read config.Open) (*Report, error) {
	files, err := testFiles(paths)
	if err != nil {
		return nil, err
	}

	r := &Report{OK: true}
	policies, riskRules := make(map[string]bool), make(map[string]bool)

	for _, file := range files {
		text, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", file, err)
		}
		tests, err := config.ReadPolicyTests(file, text, e.bundle.Content())
		if err != nil {
			return nil, err
		}

		for i := range tests {
			x, result := e.runTest(file, &tests[i])
			r.Tests, r.OK = append(r.Tests, result), r.OK && result.OK
			if result.Gate != "policy" {
				continue
			}
			policies[result.Policy] = true
			for _, s := range x.Shadow {
				policies[s.Policy] = true
			}
			for _, c := range x.Risk {
				riskRules[c.Rule] = riskRules[c.Rule] || c.Matched
			}
		}
	}

	if p := e.bundle.Content().Policy; p != nil {
		r.Uncovered.Policies = uncovered(p.Policies, policies, func(p rules.Policy) string { return p.ID })
	}

	if p := e.bundle.Content().Risk; p != nil {
		r.Uncovered.Rules = uncovered(p.Rules, riskRules, func(r risk.Rule) string { return r.ID })
	}

	return r, nil
}

// uncovered returns the ids of entries that no test reached, in their order.
func uncovered[E any](entries []E, reached map[string]bool, id func(E) string) (ids []string) {
	for _, e := range entries {
		if !reached[id(e)] {
			ids = append(ids, id(e))
		}
	}
	return ids
}

// testFiles returns the paths that are files, and the test files in the paths that are folders.
func testFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		found := len(files)
		err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if name == path || strings.HasSuffix(name, "tests.yaml") || strings.HasSuffix(name, "_test.yaml") {
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(files) == found {
			return nil, fmt.Errorf("%s: it holds no *tests.yaml and no *_test.yaml", path)
		}
	}
	return files, nil
}

// runTest judges one call. Besides the policy, only a gate that denies decides: a verdict that is
// unknown without the tool's server counts as allow.
func (e *Explainer) runTest(file string, t *config.PolicyTest) (*Explanation, Result) {
	c := &Call{
		Server:   t.Server,
		Tool:     t.Tool,
		Env:      t.Env,
		Actor:    t.Actor,
		Identity: t.Identity,
		Plan:     policy.CallPlan(t.Server, t.Tool, t.Args),
		History:  t.History,
		origins:  e.statedOrigins(t),
		Facts:    e.Facts(t.Server, t.Tool, t.Pinned, t.Annotations),
		declared: t.Declared,
		risk:     t.Risk,
	}

	if t.Session != nil {
		c.session = &t.Session.Session
	}

	x, plan := e.earlyGates(c)
	if plan != nil {
		e.addAssessment(c, plan.Args.Bytes(), x)
	}

	gate := x.decidingGate()
	if gate.Verdict != rules.Deny {
		gate = &x.Gates[len(x.Gates)-1]
	}

	r := Result{
		File:       filepath.ToSlash(file),
		Line:       t.Line,
		Name:       t.Name,
		Got:        gate.Verdict,
		Want:       t.Expect,
		Gate:       gate.Gate,
		WantPolicy: t.Policy,
		Reason:     gate.Reason,
		Facts:      x.Facts,
	}

	if gate.Gate == "policy" {
		r.Policy = x.Policy
	}

	r.OK = r.Got == r.Want && (r.WantPolicy == "" || r.WantPolicy == r.Policy)
	return x, r
}

// statedOrigins returns the origins of arguments that a test states; nil if it knows no session.
func (e *Explainer) statedOrigins(t *config.PolicyTest) *policy.Origins {
	if t.Session == nil && len(t.Origins) == 0 {
		return nil
	}

	var schema []byte
	if tool, _ := e.catalog.Find(t.Server, t.Tool); tool != nil {
		schema = tool.InputSchema
	}
	stated := &policy.Origins{Leaves: e.bundle.Origins().Find(nil, t.Server, t.Tool, t.Args, schema), Untrusted: true, Private: true}
	for _, o := range t.Origins {
		origin.Assume(stated.Leaves, o.Name, o.Value)
	}
	if t.Session != nil {
		stated.Untrusted, stated.Private = t.Session.Untrusted, t.Session.Private
	}
	return stated
}
