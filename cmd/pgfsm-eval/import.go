package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/eval/dojo"
	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
)

// importOptions are the flags of eval import agentdojo.
type importOptions struct {
	out, bundles string
	json         bool
}

func newImport(s streams) *cobra.Command {
	cmd := cli.Group("import", newImportDojo(s))
	cmd.Short = "Write tools and cases from a benchmark's data"
	return cmd
}

func newImportDojo(s streams) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "agentdojo FOLDER -o FOLDER",
		Short: "Write tools and cases from AgentDojo's tasks",
		Long: `agentdojo reads tools.json, user_tasks.json and injection/injection_tasks.json. For each suite it writes three files,
and the same three for all suites together, with SUITE "all":

  SUITE.tools.json        the tools
  SUITE.cases.jsonl       a case for each task of a user with each task of an attacker that has calls
  SUITE.retargeted.jsonl  a case for each write of a user's task that goes to another target: one argument is changed

A case names the suite's bundle and the user task's grant, if they exist: SUITE/pgfsm.yaml and SUITE/grants/TASK.yaml
below --bundles. The command counts and prints its changes to the data; docs/reference/evaluation-format.md has the
rules. It overwrites files of these names.`,
		Example: `  pgfsm-eval import agentdojo data/agentdojo -o cases --bundles eval/agentdojo
  pgfsm-eval attack --tools cases/all.tools.json --cases cases/all.cases.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.importDojo(s, args[0]) },
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "the folder to write to")
	cmd.Flags().StringVar(&o.bundles, "bundles", "eval/agentdojo", "the folder with bundles and grants")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cli.MustFlags(cmd, "output")
	return cmd
}

func (o *importOptions) importDojo(s streams, dir string) error {
	if o.out == "" {
		return errors.New("--output names no folder")
	}
	suites, found, err := dojo.ImportFiles(dir, o.out, o.bundles)
	if err != nil {
		return err
	}
	if found == 0 {
		fmt.Fprintf(s.Err, "pgfsm-eval: warning: there is no SUITE/pgfsm.yaml below %s, so the cases name no bundle: say where they are with --bundles, "+
			"or give pgfsm-eval attack one with --bundle.\n", visible.Text(o.bundles))
	}
	if o.json {
		return cli.PrintJSON(s.Out, struct {
			SchemaVersion int          `json:"schema_version"`
			Suites        []dojo.Suite `json:"suites"` // the last is all of them
		}{cli.SchemaVersion, suites})
	}
	fmt.Fprintf(s.Out, "%-12s %6s %6s %11s %8s %6s %11s %7s\n", "suite", "tools", "tasks", "injections", "no call", "pairs", "retargeted", "grants")
	for i := range suites {
		suite := &suites[i]
		fmt.Fprintf(s.Out, "%-12s %6d %6d %11d %8d %6d %11d %7d\n", visible.Text(suite.Name), suite.Offers, suite.Tasks,
			suite.Injections, suite.Notes.WithoutCalls, suite.Pairs, suite.Retargets, suite.Grants)
	}
	for _, line := range suites[len(suites)-1].Notes.Lines() {
		fmt.Fprintln(s.Out, line)
	}
	return nil
}
