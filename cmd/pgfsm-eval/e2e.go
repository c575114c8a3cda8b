package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/eval/endtoend"
	"pgfsm/internal/cli"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// evalActor is the actor of pgfsm's runs.
const evalActor = policy.LocalUser + "evaluation"

// e2eOptions are the flags of e2e.
type e2eOptions struct {
	config, cases, dir string
}

func newE2E(s streams) *cobra.Command {
	var o e2eOptions
	cmd := &cobra.Command{
		Use:   "e2e --cases FILE",
		Short: "Take cases through pgfsm and through an agent without gates",
		Long: `e2e takes every case through pgfsm, as pgfsm run does, and through an agent without gates, which has the same model and
prompts and makes every call of the model. Both use real MCP servers: without -c the embedded demo servers, started
again for each case and agent. e2e reads a configuration only with -c.

With -c, the agent without gates makes every call of the model on the servers of that configuration. Use servers whose
data you can lose.

Both ask the model of the configuration, or of LLM_BASE_URL and LLM_MODEL, for every request; e2e ignores routes.
Without a model, the output is the one that the case contains.

In the folder of --dir, e2e writes TIME_metrics.json, with the figures and the result of every case, and the folder
TIME_traces with the traces of pgfsm's runs. The figures include the latency of each agent (median and 95th percentile,
from request to answer) and the prompt and completion tokens that the endpoint reports.

Exit code 1 if pgfsm called a tool that its case does not permit, or if a run ended in an impossible state; 2 if a run
of pgfsm or of the agent failed, so that the figures do not cover all cases.`,
		Example: `  pgfsm-eval e2e --cases eval/cases_end_to_end.jsonl`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.runCases(cmd.Context(), s) },
	}

	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "configuration file (default: the embedded demo)")
	f.StringVar(&o.cases, "cases", "", "the file of cases, one JSON object a line")
	f.StringVar(&o.dir, "dir", filepath.Join("eval", "results"), "the folder for the results")
	cli.MustFlags(cmd, "cases")

	return cmd
}

func (o *e2eOptions) runCases(ctx context.Context, s streams) error {
	cases, err := endtoend.ReadCases(o.cases)
	if err != nil {
		return err
	}

	stem := filepath.Join(o.dir, time.Now().UTC().Format("20060102T150405Z"))
	b, err := endtoend.OpenBench(setup.Options{
		Config:  o.config,
		Demo:    true,
		Getenv:  os.LookupEnv,
		Version: cli.Version(),
	}, evalActor, stem+"_traces")
	if err != nil {
		return err
	}

	warnings := b.Loaded.Warnings
	if !b.IsDemo() {
		warnings = append(warnings, "the naive agent calls whatever the model says on the servers of "+b.From)
	}

	for _, warning := range warnings {
		fmt.Fprintf(s.Err, "pgfsm-eval: warning: %s\n", visible.Line(warning))
	}

	bar := cli.NewBar(s.Err, "cases", len(cases))
	m, err := b.Measure(ctx, cli.Version(), cases, func() { bar.Add(1) })
	bar.Finish()
	if err = errors.Join(err, b.Close()); err != nil {
		return err
	}

	return o.printMetrics(s, m, stem+"_metrics.json")
}

// printMetrics writes and prints the metrics, and returns an exit code.
func (o *e2eOptions) printMetrics(s streams, m *endtoend.Metrics, path string) error {
	doc, err := json.Marshal(m, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := safefile.Write(path, append(doc, '\n'), 0o600); err != nil {
		return err
	}

	code := cli.ExitYes
	switch {
	case !m.OK:
		code = cli.ExitNo
	case m.Safe.Outcomes[endtoend.Failed]+m.Naive.Outcomes[endtoend.Failed] > 0:
		code = cli.ExitFailed
	}

	fmt.Fprintf(s.Out, "%-33s  %12s  %s\n", "", "pgfsm", "naive")
	for _, r := range m.Rows() {
		fmt.Fprintf(s.Out, "%-33s  %12s  %s\n", r.What, r.Safe, r.Naive)
	}

	fmt.Fprintln(s.Out)
	for _, f := range m.Faults {
		fmt.Fprintf(s.Out, "%s %s\n", cross, visible.Text(f))
	}

	fmt.Fprintf(s.Out, "metrics %s\n", visible.Text(filepath.ToSlash(path)))
	if code == cli.ExitFailed {
		fmt.Fprintf(s.Err, "pgfsm-eval: %d of pgfsm's runs and %d of the naive agent's failed: the figures are not of all cases\n",
			m.Safe.Outcomes[endtoend.Failed], m.Naive.Outcomes[endtoend.Failed])
	}

	return cli.Exit(code)
}
