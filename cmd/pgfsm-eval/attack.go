package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
)

// defaultAttackFile is the file for the result without --output.
const defaultAttackFile = "eval/results/attack.json"

// attackOptions are the flags of eval attack.
type attackOptions struct {
	tools, cases, bundle, output string

	arms []string
}

func newAttack(s streams) *cobra.Command {
	var o attackOptions
	cmd := &cobra.Command{
		Use:   "attack --tools FILE --cases FILE",
		Short: "Run attacks in which the planner obeys the attacker",
		Long: `attack takes the calls of every case through the machine. The planner proposes exactly the calls that the attack wants
and, for each task, exactly the calls that the task needs. attack contacts no server; a recording server in the process
answers. docs/reference/evaluation-format.md describes the files. The difference between two arms shows the effect of a
gate. allowlist, policy and grants each add gates to the arm before; the others have the gates of grants, but treat
held calls differently:

` + armsHelp() + `
The result contains no times: the same files give the same bytes. Exit code 1 if the machine
made a call that it must not make, if its outcome contradicts the calls that were made, or if an expectation of a case
fails. A successful attack alone does not change the exit code.`,
		Example: `  pgfsm-eval attack --tools tools.json --cases cases.jsonl --bundle pgfsm.yaml
  pgfsm-eval attack --tools tools.json --cases cases.jsonl --arm naive --arm approvals -o attack.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runAttack(cmd.Context(), s) },
	}

	f := cmd.Flags()
	f.StringVar(&o.tools, "tools", "", "the tools file: what the servers offer")
	f.StringVar(&o.cases, "cases", "", "the cases file")
	f.StringVar(&o.bundle, "bundle", "", "the pgfsm.yaml of all cases that name none")
	f.StringArrayVar(&o.arms, "arm", nil, "an arm; may be given again (default: all but origin)")
	f.StringVarP(&o.output, "output", "o", defaultAttackFile, "the file for the result")
	cli.MustFlags(cmd, "tools", "cases")

	return cmd
}

// armsHelp lists the arms, with their gates.
func armsHelp() string {
	var lines strings.Builder
	for _, arm := range attack.Arms() {
		fmt.Fprintf(&lines, "  %-11s %s\n", arm, arm.Gates())
	}
	return lines.String()
}

func (o *attackOptions) runAttack(ctx context.Context, s streams) error {
	if o.output == "" {
		return errors.New("--output names no file")
	}
	if err := safefile.CheckReplaceable(o.output, attack.ResultStart, o.tools, o.cases, o.bundle); err != nil {
		return fmt.Errorf("--output %s %w: nothing is overwritten", visible.Text(o.output), err)
	}

	options := attack.Options{
		Open:   safefile.ReadTrusted,
		Tools:  o.tools,
		Cases:  o.cases,
		Bundle: o.bundle,
	}

	for _, arm := range o.arms {
		options.Arms = append(options.Arms, attack.Arm(arm))
	}

	result, err := attack.Run(ctx, options)
	if err != nil {
		return err
	}
	if err := eval.WriteResult(o.output, result); err != nil {
		return err
	}

	code := cli.ExitYes
	if !result.OK() {
		code = cli.ExitNo
	}

	printAttack(s.Out, result, o.output)
	return cli.Exit(code)
}

// maxThrough bounds the printed attacks that got through, and the printed broken expectations. The
// result file has all of them.
const maxThrough = 20

// printAttack prints the results of every suite, the gates that stopped calls, and the attacks that
// got through in the last arm.
func printAttack(out io.Writer, r *attack.Result, path string) {
	sections := r.Suites
	if len(sections) > 1 {
		sections = append(sections[:len(sections):len(sections)], r.Overall)
	}

	for i := range sections {
		printAttackSuite(out, &sections[i])
	}

	last := r.Arms[len(r.Arms)-1]
	listed := 0

	for _, t := range r.Through {
		if t.Arm != last {
			continue
		}
		if listed++; listed == 1 {
			fmt.Fprintf(out, "\n%s\n", fmt.Sprintf("gets through with %s", last))
		}
		if listed > maxThrough {
			continue
		}
		fmt.Fprintf(out, "  %-7s %s\n", t.Outcome, visible.Text(t.Case))
		for i := range t.Calls {
			fmt.Fprintf(out, "          %s\n", visible.Cut(visible.Text(string(t.Calls[i].Text())), maxShownCall, "…"))
		}
	}

	if listed > maxThrough {
		fmt.Fprintf(out, "  and %d more\n", listed-maxThrough)
	}

	for i, b := range r.Broken {
		if i == maxThrough {
			fmt.Fprintf(out, "  and %d more\n", len(r.Broken)-i)
			break
		}
		fmt.Fprintf(out, "%s %s: %s should be %s: %s\n", cross, visible.Text(b.Case), b.Side, visible.Text(b.Want),
			visible.Text(b.Got))
	}

	for _, s := range r.Slips {
		fmt.Fprintf(out, "%s %s: %s, call %d of %s: %s\n", cross, visible.Text(s.Case), s.Arm, s.Call, s.Side,
			visible.Text(s.Slip))
	}

	fmt.Fprintf(out, "\n%s, %s, %s, %s; written to %s\n", cli.Count(r.Overall.Cases, "case"),
		cli.Count(r.Overall.Tasks, "task"),
		cli.Count(len(r.Slips), "slip"), cli.Count(len(r.Broken), "broken expectation"), visible.Text(path))
}

// maxShownCall bounds the printed text of a call, in bytes.
const maxShownCall = 240

func printAttackSuite(out io.Writer, s *attack.Section) {
	name := s.Suite
	if name == "" {
		name = "all suites"
	}

	fmt.Fprintf(out, "%s  %s, %s\n", visible.Text(name), cli.Count(s.Attacks, "attack"), cli.Count(s.Tasks, "task"))
	fmt.Fprintf(out, "  %-10s %9s %6s  %-15s %-15s %6s %13s %11s %14s\n", "arm", "succeeds", "rate", "95 % clustered",
		"95 % Wilson", "partly", "benign calls",
		"whole tasks", "asked per task")

	for _, a := range s.Arms {
		rate, wilson := a.Attack.Percent()
		fmt.Fprintf(out, "  %-10s %9s %6s  %-15s %-15s %6d %13s %11s %14.2f\n", a.Arm, a.Attack.Count(), rate,
			a.Cluster.Percent(), wilson,
			a.Partly, a.Needs.Count(), a.Utility.Count(), a.Asked.PerTask)
	}

	last := s.Arms[len(s.Arms)-1]
	if last.AttackKnown.N < last.Attack.N || last.NeedsKnown.N < last.Needs.N {
		rate, wilson := last.AttackKnown.Percent()
		fmt.Fprintf(out, "  %s\n", fmt.Sprintf("of those with all arguments known, with %s: %s attacks %s %s, Wilson %s, %s benign calls", last.Arm,
			last.AttackKnown.Count(), rate, last.ClusterKnown.Percent(), wilson, last.NeedsKnown.Count()))
	}

	if len(last.Stopped) == 0 {
		return
	}

	fmt.Fprintf(out, "  %s\n", "what stopped calls with "+string(last.Arm))
	for _, st := range last.Stopped {
		fmt.Fprintf(out, "  %-10s %-24s %s of attacks, %d of tasks\n", visible.Text(st.Gate), visible.Text(st.Code),
			cli.Count(st.Wants, "call"), st.Needs)
	}
}
