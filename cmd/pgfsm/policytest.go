package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
	"pgfsm/safefile"
)

func newPolicyTest(w world) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "test FILE|FOLDER ...",
		Short: "Test risk rules and policies on calls with known answers",
		Long: `test judges each call of the files and compares the decision. In a folder it reads every *tests.yaml and *_test.yaml. It
also names rules and policies that no test reaches. A test asks the gates that explain asks, so a call that the allowlist, the
kept schema or a grant refuses is denied. test assumes that the server still lists the tool. A test that names a
server, tool, mode, score or policy that the configuration does not have is an error, except for the file's own tools.
Exit code 1 if a decision is not the expected one.`,
		Example: `  pgfsm policy test -c pgfsm.yaml tests.yaml`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), w, func(a *app) error { return a.testPolicy(cmd.Context(), args, o.json) })
		},
	}
	o.register(cmd)
	return cmd
}

// judged is what came of one test.
type judged struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Got    string `json:"got"`
	Want   string `json:"want"`
	Gate   string `json:"gate"` // that decided
	Policy string `json:"policy,omitzero"`
	Wanted string `json:"want_policy,omitzero"`
	Reason string `json:"reason"`

	Known toolKnown `json:"known"` // what conditions were told of the tool, and where that is from
}

// coverage is what tests have taken of a configuration, and what not.
type coverage struct {
	Policies []string `json:"policies_without_a_test"`
	Rules    []string `json:"risk_rules_without_a_test"`
}

func (a *app) testPolicy(ctx context.Context, paths []string, asJSON bool) error {
	files, err := testFiles(paths)
	if err != nil {
		return err
	}
	tools, err := a.toolsKnown(ctx, false)
	if err != nil {
		return err
	}
	var all []judged
	taken := make(map[string]bool)
	ruled := make(map[string]bool)
	for _, file := range files {
		text, err := safefile.ReadTrusted(file)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", file, err)
		}
		tests, err := config.ReadPolicyTests(file, text, a.bundle.Content())
		if err != nil {
			return err
		}
		for _, t := range tests {
			known := tools.of(t.Server, t.Tool).with(t.Pinned, t.Annotations)
			got, err := a.judge(tools, question{
				server: t.Server, tool: t.Tool, env: t.Env, actor: t.Actor, args: string(t.Args), history: t.History, known: known,
				declared: t.Declared, risk: t.Risk,
			})
			if err != nil {
				return fmt.Errorf("%s:%d: %w", file, t.Line, err)
			}
			all = append(all, newJudged(file, t, got, known))
			taken[all[len(all)-1].Policy] = true
			if all[len(all)-1].Gate != "policy" {
				continue
			}
			for _, s := range got.Shadow {
				taken[s.Policy] = true
			}
			for _, c := range got.Risk {
				ruled[c.Rule] = ruled[c.Rule] || c.Matched
			}
		}
	}
	c := a.uncovered(taken, ruled)
	return a.reportTests(all, c, asJSON)
}

// testFiles are the files that are named, and those of the folders that are.
func testFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		found := 0
		err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if name == path || strings.HasSuffix(name, "tests.yaml") || strings.HasSuffix(name, "_test.yaml") {
				files = append(files, name)
				found++
			}
			return nil
		})
		if err == nil && found == 0 {
			err = errors.New("it holds no *tests.yaml and no *_test.yaml")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

// newJudged takes for granted what no gate can tell without the tool's server.
func newJudged(file string, t config.PolicyTest, got opinion, known toolKnown) judged {
	by := got.gates[len(got.gates)-1]
	if d := deciding(got.gates); d.Verdict == rules.Deny {
		by = d
	}
	j := judged{
		File: filepath.ToSlash(file), Line: t.Line, Name: t.Name, Got: by.Verdict, Want: t.Expect, Gate: by.Gate,
		Wanted: t.Policy, Reason: by.Reason, Known: known,
	}
	if by.Gate == "policy" {
		j.Policy = got.Policy
	}
	j.OK = j.Got == j.Want && (j.Wanted == "" || j.Wanted == j.Policy)
	return j
}

// uncovered are the policies and risk rules that no test has taken, in their order.
func (a *app) uncovered(taken, ruled map[string]bool) (c coverage) {
	content := a.bundle.Content()
	if content.Policy != nil {
		for _, p := range content.Policy.Policies {
			if !taken[p.ID] {
				c.Policies = append(c.Policies, p.ID)
			}
		}
	}
	if content.Risk != nil {
		for _, r := range content.Risk.Rules {
			if !ruled[r.ID] {
				c.Rules = append(c.Rules, r.ID)
			}
		}
	}
	return c
}

func (a *app) reportTests(all []judged, c coverage, asJSON bool) error {
	bad := 0
	for _, j := range all {
		if !j.OK {
			bad++
		}
	}
	code := exitYes
	if bad > 0 {
		code = exitNo
	}
	if asJSON {
		err := printJSON(a.w.stdout, struct {
			SchemaVersion int      `json:"schema_version"`
			OK            bool     `json:"ok"`
			Tests         []judged `json:"tests"`
			Uncovered     coverage `json:"uncovered"`
		}{schemaVersion, bad == 0, all, c})
		return errors.Join(err, exit(code))
	}
	out, k := a.w.stdout, newInk(a.w)
	for _, j := range all {
		fmt.Fprintf(out, "%s %s\n", k.mark(j.OK), visible.Text(j.Name))
		if !j.OK {
			got, want := j.Got, j.Want
			if j.Policy != "" {
				got += fmt.Sprintf(" by %q", visible.Text(j.Policy))
			}
			if j.Wanted != "" {
				want += fmt.Sprintf(" by %q", visible.Text(j.Wanted))
			}
			fmt.Fprintf(out, "  %s:%d: %s at the gate %s, want %s: %s\n", visible.Text(j.File), j.Line, got, j.Gate, want, visible.Text(j.Reason))
			fmt.Fprintf(out, "  tool: %s\n", visible.Text(j.Known.says()))
		}
	}
	for _, group := range []struct {
		what string
		ids  []string
	}{{"policies", c.Policies}, {"risk rules", c.Rules}} {
		if len(group.ids) > 0 {
			fmt.Fprintf(out, "%s that no test takes: %s\n", group.what, visible.Text(strings.Join(group.ids, ", ")))
		}
	}
	fmt.Fprintf(out, "%s, %d as expected\n", count(len(all), "test"), len(all)-bad)
	return exit(code)
}
