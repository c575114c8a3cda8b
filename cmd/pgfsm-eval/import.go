package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/eval/dojo"
	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
)

func newImport(s streams) *cobra.Command {
	cmd := cli.Group("import", newImportDojo(s))
	cmd.Short = "Write tools and cases from a benchmark's data"
	return cmd
}

func newImportDojo(s streams) *cobra.Command {
	var out, bundles string
	cmd := &cobra.Command{
		Use:   "agentdojo FOLDER -o FOLDER",
		Short: "Write tools and cases from AgentDojo's tasks",
		Long: `agentdojo reads tools.json, user_tasks.json and injection/injection_tasks.json. For each suite it writes three files,
and the same three for all suites together, with SUITE "all":

  SUITE.tools.json        the tools
  SUITE.cases.jsonl       a case for each task of a user with each task of an attacker that has calls
  SUITE.retargeted.jsonl  a case for each write of a user's task that goes to another target: one argument is changed

A case names the suite's bundle and the user task's grant, if they exist: SUITE/pgfsm.yaml and SUITE/grants/TASK.yaml
below --bundles. docs/reference/evaluation-format.md has the rules. The command overwrites files of these names.`,
		Example: `  pgfsm-eval import agentdojo data/agentdojo -o cases --bundles eval/agentdojo
  pgfsm-eval attack --tools cases/all.tools.json --cases cases/all.cases.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			suites, err := dojo.Import(args[0], out, bundles)
			if err != nil {
				return err
			}
			printImport(s, suites)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the folder to write to")
	cmd.Flags().StringVar(&bundles, "bundles", "eval/agentdojo", "the folder with bundles and grants")
	cli.MustFlags(cmd, "output")
	return cmd
}

func printImport(s streams, suites []*dojo.Suite) {
	fmt.Fprintf(s.Out, "%-12s %6s %6s %11s %8s %6s %11s %7s\n", "suite", "tools", "tasks", "injections", "no call", "pairs", "retargeted", "grants")
	for _, suite := range suites {
		fmt.Fprintf(s.Out, "%-12s %6d %6d %11d %8d %6d %11d %7d\n", visible.Text(suite.Name), suite.Tools, suite.Tasks,
			suite.Injections, suite.WithoutCalls, suite.Pairs, suite.Retargeted, suite.Grants)
	}
	if suites[len(suites)-1].Grants == 0 {
		fmt.Fprintln(s.Err, "pgfsm-eval: warning: no task has a grant: name the folder with bundles and grants (--bundles)")
	}
}
