package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/eval/endtoend"
	"pgfsm/internal/cli"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// evalActor is the actor of pgfsm's runs.
const evalActor = policy.LocalUser + "evaluation"

// e2eOptions are the flags of eval e2e.
type e2eOptions struct {
	config string
	json   bool
	cases  string
	dir    string
	jobs   int
	resume bool
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
Without a model, a scripted model returns the output that the case contains, over HTTP.

In the folder of --dir, e2e writes TIME_runs.jsonl (one line a case), TIME_metrics.json, TIME_table.md and the folder
TIME_traces with the traces of pgfsm's runs. --resume continues the newest interrupted evaluation.

Exit code 1 if pgfsm called a tool that its case does not permit, or if a run ended in an impossible state; 2 if a run
of pgfsm or of the agent failed, so that the figures do not cover all cases.`,
		Example: `  pgfsm-eval e2e --cases eval/cases_end_to_end.jsonl`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.evaluate(cmd.Context(), s) },
	}
	cmd.Flags().StringVarP(&o.config, "config", "c", "", "configuration file (default: the embedded demo)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the metrics as one JSON document")
	cmd.Flags().StringVar(&o.cases, "cases", "", "the file of cases, one JSON object a line (required)")
	cmd.Flags().StringVar(&o.dir, "dir", filepath.Join("eval", "results"), "the folder for the results")
	cmd.Flags().IntVar(&o.jobs, "jobs", 1, "how many cases in parallel; more than one distorts latencies")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "continue the newest interrupted evaluation of the folder")
	return cmd
}

func (o *e2eOptions) evaluate(ctx context.Context, s streams) error {
	if o.cases == "" {
		return errors.New("--cases is missing: name a file of cases, such as eval/cases_end_to_end.jsonl")
	}
	if o.jobs < 1 {
		return fmt.Errorf("--jobs is %d; at least one case at a time is run", o.jobs)
	}
	cases, err := endtoend.ReadCasesFile(o.cases)
	if err != nil {
		return err
	}
	b, err := endtoend.OpenBench(setup.Options{
		Config: o.config, Demo: true, Getenv: os.LookupEnv, Version: cli.Version(),
	}, evalActor)
	if err != nil {
		return err
	}
	for _, warning := range b.Loaded.Warnings {
		fmt.Fprintf(s.Err, "pgfsm-eval: warning: %s\n", visible.Line(warning))
	}
	if !b.IsDemo() {
		fmt.Fprintf(s.Err, "pgfsm-eval: warning: the naive agent calls whatever the model says on the servers of %s\n", visible.Line(b.From))
	}
	err = o.measure(ctx, s, b, cases)
	if late := b.Close(); late != nil {
		fmt.Fprintf(s.Err, "pgfsm-eval: warning: %s\n", visible.Lines(late.Error()))
	}
	return err
}

func (o *e2eOptions) measure(ctx context.Context, s streams, b *endtoend.Bench, cases []endtoend.Case) error {
	header, err := b.Header(cli.Version(), cases)
	if err != nil {
		return err
	}
	var book *endtoend.Book
	if o.resume {
		book, err = endtoend.Resume(o.dir, header)
	} else {
		book, err = endtoend.Begin(o.dir, header, time.Now())
	}
	if err != nil {
		return err
	}
	bar := cli.NewBar(s.Err, "cases", len(cases))
	bar.Add(min(len(book.Runs), len(cases)))
	m, runs, err := b.Measure(ctx, book, cases, o.jobs, func() { bar.Add(1) })
	bar.Finish()
	if err != nil {
		return fmt.Errorf("%w\n(%d of %d cases are done; --resume goes on)", err, len(runs), len(cases))
	}
	metrics, _, table := book.Files()
	return report(s, &m, o.json, filepath.ToSlash(metrics), filepath.ToSlash(table))
}

// report prints the metrics, and returns an exit code.
func report(s streams, m *endtoend.Metrics, asJSON bool, metrics, table string) error {
	code := cli.ExitYes
	switch {
	case !m.OK:
		code = cli.ExitNo
	case m.Safe.Failed+m.Naive.Failed > 0:
		code = cli.ExitFailed
	}
	if asJSON {
		err := cli.PrintJSON(s.Out, struct {
			SchemaVersion int               `json:"schema_version"`
			Metrics       *endtoend.Metrics `json:"metrics"`
			File          string            `json:"file"`
		}{cli.SchemaVersion, m, metrics})
		return errors.Join(err, cli.Exit(code))
	}
	rows := append([]endtoend.Row{{Safe: "pgfsm", Naive: "naive"}}, m.Rows()...)
	what, safe := 0, 0
	for _, r := range rows {
		what, safe = max(what, len(r.What)), max(safe, len(r.Safe))
	}
	for _, r := range rows {
		fmt.Fprintf(s.Out, "%-*s  %*s  %s\n", what, r.What, safe, r.Safe, r.Naive)
	}
	fmt.Fprintln(s.Out)
	for _, f := range m.Faults {
		fmt.Fprintf(s.Out, "%s %s\n", cross, visible.Text(f))
	}
	fmt.Fprintf(s.Out, "metrics %s\ntable   %s\n", visible.Text(metrics), visible.Text(table))
	if code == cli.ExitFailed {
		fmt.Fprintf(s.Err, "pgfsm-eval: %d of pgfsm's runs and %d of the naive agent's failed: the figures are not of all cases\n",
			m.Safe.Failed, m.Naive.Failed)
	}
	return cli.Exit(code)
}
