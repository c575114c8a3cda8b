package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/eval"
	"pgfsm/eval/gates"
	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
)

// gatesOptions are the flags of gates.
type gatesOptions struct {
	output string

	run func(context.Context) (*gates.Report, error) // [gates.Run], or a double in tests
}

func newGates(s streams) *cobra.Command {
	o := gatesOptions{run: gates.Run}
	cmd := &cobra.Command{
		Use:   "gates",
		Short: "Run every gate on cases with known answers, offline",
		Long: `gates needs no server, no model and no configuration. It runs every gate, and the machine around them, on cases with
known answers, and writes the result to a JSON file. The file has no times: it has the same bytes on every machine.
Exit code 1 if a gate gives a wrong answer; gates prints the case.`,
		Example: `  pgfsm-eval gates
  pgfsm-eval gates -o gates.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.evaluateGates(cmd.Context(), s) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "eval/results/offline_gate_eval.json", "the file for the result")
	return cmd
}

func (o *gatesOptions) evaluateGates(ctx context.Context, s streams) error {
	if o.output == "" {
		return errors.New("--output names no file")
	}
	if err := safefile.CheckReplaceable(o.output, gates.ResultStart); err != nil {
		return fmt.Errorf("--output %s %w: nothing is overwritten", visible.Text(o.output), err)
	}
	report, err := o.run(ctx)
	if err != nil {
		return err
	}

	if err := eval.WriteResult(o.output, report); err != nil {
		return err
	}

	code := cli.ExitYes
	if report.Slips() > 0 {
		code = cli.ExitNo
	}

	printGates(s.Out, report, o.output)
	return cli.Exit(code)
}

// printGates prints a table of the suites and the listed slips.
func printGates(out io.Writer, r *gates.Report, path string) {
	fmt.Fprintf(out, "  %-17s %8s %6s  %s\n", "suite", "cases", "slips", "what was counted")
	for _, s := range r.Suites {
		fmt.Fprintf(out, "%s %-17s %8d %6d  %s\n", mark(s.Slips == 0), s.Name, s.Cases, s.Slips, s.Counted)
	}
	for _, s := range r.Suites {
		for _, slip := range s.Slipped {
			fmt.Fprintf(out, "\n%s %s %s\n", cross, s.Name, visible.Text(slip.ID))
			fmt.Fprintf(out, "  input:    %s\n", slip.Input)
			fmt.Fprintf(out, "  expected: %s\n  got:      %s\n", visible.Text(slip.Want), visible.Text(slip.Got))
		}
		if more := s.Slips - len(s.Slipped); more > 0 && len(s.Slipped) > 0 {
			fmt.Fprintf(out, "  and %d more of %s\n", more, s.Name)
		}
	}
	fmt.Fprintf(out, "%s in %s, written to %s\n", cli.Count(r.Slips(), "slip"), cli.Count(len(r.Suites), "suite"),
		visible.Text(path))
}
