package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
)

func newPolicyTest(w world) *cobra.Command {
	var o options
	return o.command(w, "test FILE|FOLDER ...", cobra.MinimumNArgs(1), func(ctx context.Context, a *app, paths []string) error {
		catalog, err := a.catalog(ctx, a.Bundle, false)
		if err != nil {
			return err
		}
		report, err := explain.New(a.Bundle, catalog, false, timestamp()).Test(paths, safefile.ReadTrusted)
		if err != nil {
			return err
		}
		code := cli.ExitYes
		if !report.OK {
			code = cli.ExitNo
		}
		doc := struct {
			SchemaVersion int `json:"schema_version"`
			*explain.Report
		}{cli.SchemaVersion, report}
		return a.print(doc, code, func(out io.Writer, k ink) { printTests(out, k, report) })
	})
}

func printTests(out io.Writer, k ink, report *explain.Report) {
	good := 0
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
	fmt.Fprintf(out, "%s, %d as expected\n", cli.Count(len(report.Tests), "test"), good)
}
