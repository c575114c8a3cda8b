package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/runner/explain"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
)

func newPolicyTest(w world) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:  "test FILE|FOLDER ...",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withApp(w, func(a *app) error { return a.testPolicy(cmd.Context(), args, o.json) })
		},
	}
	o.register(cmd)
	return cmd
}

func (a *app) testPolicy(ctx context.Context, paths []string, asJSON bool) error {
	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return err
	}
	report, err := explain.New(a.Bundle, catalog, false, now()).Test(paths, safefile.ReadTrusted)
	if err != nil {
		return err
	}
	code := exitYes
	if !report.OK {
		code = exitNo
	}
	if asJSON {
		err := printJSON(a.w.stdout, struct {
			SchemaVersion int `json:"schema_version"`
			*explain.Report
		}{schemaVersion, report})
		return errors.Join(err, exit(code))
	}
	a.printTests(report)
	return exit(code)
}

func (a *app) printTests(report *explain.Report) {
	out, k, good := a.w.stdout, newInk(a.w), 0
	by := func(decision, policy string) string {
		if policy == "" {
			return decision
		}
		return fmt.Sprintf("%s by %q", decision, visible.Text(policy))
	}
	for _, t := range report.Tests {
		if fmt.Fprintf(out, "%s %s\n", k.mark(t.OK), visible.Text(t.Name)); t.OK {
			good++
			continue
		}
		fmt.Fprintf(out, "  %s:%d: %s at the gate %s, want %s: %s\n", visible.Text(t.File), t.Line, by(t.Got, t.Policy), t.Gate,
			by(t.Want, t.WantPolicy), visible.Text(t.Reason))
		fmt.Fprintf(out, "  tool: %s\n", visible.Text(t.Facts.String()))
	}
	for _, group := range []struct {
		what string
		ids  []string
	}{{"policies", report.Uncovered.Policies}, {"risk rules", report.Uncovered.Rules}} {
		if len(group.ids) > 0 {
			fmt.Fprintf(out, "%s that no test takes: %s\n", group.what, visible.Text(strings.Join(group.ids, ", ")))
		}
	}
	fmt.Fprintf(out, "%s, %d as expected\n", count(len(report.Tests), "test"), good)
}
