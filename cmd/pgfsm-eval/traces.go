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
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

// fromTracesOptions are the flags of eval from-traces.
type fromTracesOptions struct {
	out  string
	json bool
}

func newFromTraces(s streams) *cobra.Command {
	var o fromTracesOptions
	cmd := &cobra.Command{
		Use:   "from-traces TRACE... -o FOLDER",
		Short: "Write a regression suite from stored traces",
		Long: `from-traces reads traces (files, or every *.json in a folder and below whose format is pgfsm.trace/v1), verifies each
chain, executes each trace again, and writes the decisions as cases for pgfsm-eval attack. A call that was made becomes
a benign call. A refused call must be refused with the same code, and a held call must be held. from-traces judges each
suite once by the traces' own bundle.

If the runs are in a ledger, write their traces first: pgfsm ledger trace RUN -o FILE, or pgfsm ledger trace --all -o
FOLDER.

A suite contains the requests and arguments of the traces. FOLDER must be empty or must not exist.

Exit code 1 if a trace was tampered with or diverges, 2 if one cannot be read. from-traces names such a trace and omits
it.`,
		Example: `  pgfsm-eval from-traces traces -o regression
  pgfsm ledger trace --all -o traces && pgfsm-eval from-traces traces -o regression`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.make(cmd.Context(), s, args) },
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "the folder to write to (required)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

func (o *fromTracesOptions) make(ctx context.Context, s streams, args []string) error {
	if o.out == "" {
		return errors.New("-o is missing: name a folder for the suites")
	}
	paths, err := traces.Files(args)
	if err != nil {
		return err
	}
	machine, err := states.NewMachine()
	if err != nil {
		return err
	}
	maker, err := fromtraces.NewMaker(o.out)
	if err != nil {
		return err
	}
	bar := cli.NewBar(s.Err, "reading traces", len(paths))
	bad, err := maker.AddFiles(ctx, traces.NewReplayer(machine, nil), paths, func() { bar.Add(1) })
	bar.Finish()
	if err != nil {
		return err
	}
	suites, left, err := maker.Finish(ctx, safefile.ReadTrusted)
	if err != nil {
		return err
	}
	return o.report(s, suites, left, bad)
}

func (o *fromTracesOptions) report(s streams, suites []fromtraces.Suite, left []fromtraces.Left, bad []traces.Checked) error {
	code := cli.ExitYes
	switch {
	case slices.ContainsFunc(bad, func(c traces.Checked) bool { return c.Code != traces.CodeUnreadable }):
		code = cli.ExitNo
	case len(bad) > 0 || len(suites) == 0: // a suite without cases could never fail
		code = cli.ExitFailed
	}
	for i := range suites {
		s := &suites[i]
		s.Cases, s.Tools = filepath.ToSlash(s.Cases), filepath.ToSlash(s.Tools)
	}
	if o.json {
		err := cli.PrintJSON(s.Out, struct {
			SchemaVersion int                `json:"schema_version"`
			OK            bool               `json:"ok"`
			Suites        []fromtraces.Suite `json:"suites"`
			Left          []fromtraces.Left  `json:"left_out"`
			Bad           []traces.Checked   `json:"bad"`
		}{cli.SchemaVersion, code == cli.ExitYes, suites, left, bad})
		return errors.Join(err, cli.Exit(code))
	}
	out := s.Out
	for _, r := range bad {
		fmt.Fprintf(out, "%s %s\n  %s\n", cross, visible.Text(r.Path), visible.Text(r.Code+": "+r.Error))
	}
	for _, l := range left {
		fmt.Fprintf(out, "left out %s\n  %s\n", visible.Text(l.Path), visible.Text(l.Reason))
	}
	for _, s := range suites {
		fmt.Fprintf(out, "%s %s\n  pgfsm-eval attack --tools %s --cases %s --bundle pgfsm.yaml\n", tick, cli.Count(s.Count, "case"),
			visible.Text(s.Tools), visible.Text(s.Cases))
	}
	if len(suites) == 0 {
		fmt.Fprintln(s.Err, "pgfsm-eval: no trace became a case")
	}
	return cli.Exit(code)
}
