package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/eval/fromtraces"
	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

func newFromTraces(s streams) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "from-traces TRACE... -o FOLDER",
		Short: "Write a regression suite from stored traces",
		Long: `from-traces reads traces (files, or every *.json in a folder and below whose format is pgfsm.trace/v1), verifies each
chain, executes each trace again, and writes the decisions as cases for pgfsm-eval attack. A call that was made becomes
a benign call. A refused call must be refused with the same code, and a held call must be held. from-traces judges each
case once by the bundle of its trace.

If the runs are in a ledger, write their traces first: pgfsm ledger trace RUN -o FILE, or pgfsm ledger trace --all -o
FOLDER.

The suite contains the requests and arguments of the traces. FOLDER must be empty or must not exist.

Exit code 1 if a trace was tampered with or diverges, 2 if one cannot be read. from-traces names such a trace and omits
it.`,
		Example: `  pgfsm-eval from-traces traces -o regression
  pgfsm ledger trace --all -o traces && pgfsm-eval from-traces traces -o regression`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return makeSuite(cmd.Context(), s, folder, args) },
	}

	cmd.Flags().StringVarP(&folder, "output", "o", "", "the folder to write to (required)")
	return cmd
}

func makeSuite(ctx context.Context, s streams, folder string, args []string) error {
	if folder == "" {
		return errors.New("-o is missing: name a folder for the suite")
	}
	paths, err := traces.Files(args)
	if err != nil {
		return err
	}
	machine, err := states.NewMachine()
	if err != nil {
		return err
	}

	bar := cli.NewBar(s.Err, "reading traces", len(paths))
	suite, err := fromtraces.Make(ctx, folder, traces.NewReplayer(machine, nil), paths, func() { bar.Add(1) })
	bar.Finish()
	if err != nil {
		return err
	}

	for _, r := range suite.Bad {
		fmt.Fprintf(s.Out, "%s %s\n  %s\n", cross, visible.Text(r.Path), visible.Text(r.Code+": "+r.Error))
	}

	for _, l := range suite.Left {
		fmt.Fprintf(s.Out, "left out %s\n  %s\n", visible.Text(l.Path), visible.Text(l.Reason))
	}

	if suite.Count == 0 {
		fmt.Fprintln(s.Err, "pgfsm-eval: no trace became a case")
	} else {
		fmt.Fprintf(s.Out, "%s %s\n  pgfsm-eval attack --tools %s --cases %s --bundle pgfsm.yaml\n", tick,
			cli.Count(suite.Count, "case"),
			visible.Text(filepath.ToSlash(suite.Tools)), visible.Text(filepath.ToSlash(suite.Cases)))
	}

	switch {
	case slices.ContainsFunc(suite.Bad, func(c traces.Checked) bool { return c.Code != traces.CodeUnreadable }):
		return cli.Exit(cli.ExitNo)
	case len(suite.Bad) > 0 || suite.Count == 0: // a suite without cases could never fail
		return cli.Exit(cli.ExitFailed)
	}

	return nil
}
