package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/visible"
	"pgfsm/policy/lint"
	"pgfsm/states"
)

func newPolicyLint(w world) *cobra.Command {
	var o options
	var live bool
	cmd := o.command(w, "lint", cobra.NoArgs, func(ctx context.Context, a *app, _ []string) error { return a.lint(ctx, live) })
	cmd.Flags().BoolVar(&live, "live", false, "ask the servers for their tools")
	return cmd
}

// lintFinding is a finding with its place.
type lintFinding struct {
	File string `json:"file,omitzero"`
	At   int    `json:"at_line,omitzero"`
	Col  int    `json:"at_column,omitzero"`
	lint.Finding

	err *config.Error
}

func (a *app) lint(ctx context.Context, live bool) error {
	catalog, err := a.catalog(ctx, a.Bundle, live)
	if err != nil {
		return err
	}
	if live && !catalog.Up() {
		return errors.New(states.NoServers(catalog))
	}
	if c := a.Bundle.Content(); !a.json && c.Policy == nil && c.Risk == nil {
		fmt.Fprintln(a.w.stdout, "no policy is configured")
		return nil
	}
	code := cli.ExitYes
	var all []lintFinding
	for _, f := range lint.Lint(a.Bundle.Content(), catalog) {
		if f.Severity != lint.Note {
			code = cli.ExitNo
		}
		e := a.Loaded.LintError(f)
		all = append(all, lintFinding{e.File, e.Line, e.Col, f, e})
	}
	return a.print(cli.Document("ok", code == cli.ExitYes, "tools_known", catalog != nil, "findings", all), code, func(out io.Writer, _ ink) {
		for _, f := range all {
			fmt.Fprintf(out, "%s [%s] %s\n", f.Severity, f.Code, visible.Lines(f.err.Error()))
		}
		if catalog == nil {
			fmt.Fprintln(out, "lint did not check arguments: no tool is pinned; use --live")
		}
		fmt.Fprintf(out, "%s\n", cli.Count(len(all), "finding"))
	})
}
