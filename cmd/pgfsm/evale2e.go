package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/eval/endtoend"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/policy/visible"
)

// e2eOptions are the flags of eval e2e.
type e2eOptions struct {
	options
	cases  string
	dir    string
	jobs   int
	resume bool
}

func newEvalE2E(w world) *cobra.Command {
	o := e2eOptions{options: options{demo: true}}
	cmd := &cobra.Command{
		Use:   "e2e --cases FILE",
		Short: "Take cases through pgfsm and through an agent without gates",
		Long: `e2e takes every case through pgfsm, as pgfsm run does, and through a deliberately naive agent with the same
model and prompts, which executes whatever the model says. Both use real MCP servers: without -c the
embedded demo servers, new for each case and agent. e2e uses no configuration but that of -c.

With -c the naive agent makes every call of the model on the servers of that configuration. Use servers whose data
may be lost.

Both ask the model of the configuration, or of LLM_BASE_URL and LLM_MODEL, for every request; e2e ignores routes.
Without a model, a scripted one returns each case's own output, over the same HTTP.

In the folder of --dir it writes TIME_runs.jsonl (a line a case, flushed), TIME_metrics.json, TIME_table.md and
TIME_traces, a folder with the trace of each of pgfsm's runs. --resume continues the newest one that was interrupted.

Exit code 1 if pgfsm called a tool that its case does not permit, or if a run ended in an impossible state; 2 if a run of
either failed, so that the figures do not cover all cases.`,
		Example: `  pgfsm eval e2e --cases eval/cases_end_to_end.jsonl`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.evaluate(cmd.Context(), w) },
	}
	cmd.Flags().StringVarP(&o.config, "config", "c", "", "configuration file (default: the embedded demo)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the metrics as one JSON document")
	cmd.Flags().StringVar(&o.cases, "cases", "", "the file of cases, one JSON object a line (required)")
	cmd.Flags().StringVar(&o.dir, "dir", filepath.Join("eval", "results"), "the folder for the results")
	cmd.Flags().IntVar(&o.jobs, "jobs", 1, "how many cases in parallel; more than one distorts latencies")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "continue the newest interrupted evaluation of the folder")
	return cmd
}

func (o *e2eOptions) evaluate(ctx context.Context, w world) error {
	if o.cases == "" {
		return errors.New("--cases is missing: name a file of cases, such as eval/cases_end_to_end.jsonl")
	}
	if o.jobs < 1 {
		return fmt.Errorf("--jobs is %d; at least one case at a time is run", o.jobs)
	}
	cases, err := readCases(o.cases)
	if err != nil {
		return err
	}
	b, err := o.bench(w)
	if err != nil {
		return err
	}
	err = b.measure(ctx, cases, o)
	if closing := b.app.close(); closing != nil {
		fmt.Fprintf(w.stderr, "pgfsm: warning: %s\n", visible.Lines(closing.Error()))
	}
	return err
}

// readCases reads a file of cases. It decides nothing, so it may be anybody's.
func readCases(path string) ([]endtoend.Case, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil && info.Size() > endtoend.MaxCasesBytes {
		err = fmt.Errorf("%s has %d bytes; at most %d are read: split it", path, info.Size(), endtoend.MaxCasesBytes)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return endtoend.ReadCases(path, text)
}

// bench is what every case is measured with: the app of one configuration, whose parts are made anew for each case.
type bench struct {
	app      *app
	scripted bool
	traces   string
}

// bench opens the configuration for a model that is asked about everything: the configured one, or a scripted one.
func (o *e2eOptions) bench(w world) (*bench, error) {
	a, err := open(w, &o.options)
	if err != nil {
		return nil, err
	}
	content := *a.bundle.Content()
	scripted := content.Planner.LLM == nil
	if !scripted {
		if closing := a.close(); closing != nil {
			return nil, closing
		}
		o.planner = policy.PlannerLLM
		a, err = open(w, &o.options)
		return &bench{app: a}, err
	}
	content.Planner.Mode = policy.PlannerLLM
	content.Planner.LLM = &policy.LLM{ // its port is another one for each case: all have one bundle
		BaseURL: "embedded:" + endtoend.ScriptedModel, Model: endtoend.ScriptedModel,
		Timeout: policy.DefaultLLMTimeout, MaxTokens: policy.DefaultMaxTokens, Prompt: llm.PromptVersion,
	}
	a.bundle, err = policy.Compile(content)
	return &bench{app: a, scripted: true}, err
}

// header says what is evaluated.
func (b *bench) header(cases []endtoend.Case) endtoend.Header {
	model := b.app.bundle.Content().Planner.LLM
	return endtoend.Header{
		Format: endtoend.Format, Version: version(), Model: model.Model, Scripted: b.scripted, Prompt: model.Prompt,
		Suite: endtoend.DigestOf(cases), Bundle: b.app.bundle.Digest(), Machine: b.app.machine.Digest(), Observed: b.app.demo,
	}
}

func (b *bench) measure(ctx context.Context, cases []endtoend.Case, o *e2eOptions) error {
	w := b.app.w
	if !b.app.demo {
		fmt.Fprintf(w.stderr, "pgfsm: warning: the naive agent calls whatever the model says on the servers of %s\n", visible.Text(b.app.config))
	}
	book, err := o.book(b.header(cases))
	if err != nil {
		return err
	}
	b.traces = book.TracesDir()
	bar := newBar(w, "cases", len(cases))
	bar.Add(min(len(book.Runs), len(cases)))
	runs, err := book.Evaluate(ctx, cases, o.jobs, b.safe, b.naive, func() { bar.Add(1) })
	bar.Finish()
	var m endtoend.Metrics
	if err == nil {
		m = book.Header.Sum(time.Now().UTC().Format(time.RFC3339), cases, runs)
		err = book.Finish(m)
	}
	metrics, _, table := book.Files()
	if err = errors.Join(err, book.Close()); err != nil {
		return fmt.Errorf("%w\n(%d of %d cases are done; --resume goes on)", err, len(runs), len(cases))
	}
	return report(w, &m, o.json, filepath.ToSlash(metrics), filepath.ToSlash(table))
}

func (o *e2eOptions) book(h endtoend.Header) (*endtoend.Book, error) {
	if o.resume {
		return endtoend.Resume(o.dir, h)
	}
	return endtoend.Begin(o.dir, h, time.Now())
}

// report prints what was found, and says it as an exit code.
func report(w world, m *endtoend.Metrics, asJSON bool, metrics, table string) error {
	code := exitYes
	switch {
	case !m.OK:
		code = exitNo
	case m.Safe.Failed+m.Naive.Failed > 0:
		code = exitCould
	}
	if asJSON {
		err := printJSON(w.stdout, struct {
			SchemaVersion int               `json:"schema_version"`
			Metrics       *endtoend.Metrics `json:"metrics"`
			File          string            `json:"file"`
		}{schemaVersion, m, metrics})
		return errors.Join(err, exit(code))
	}
	k, rows := newInk(w), m.Rows()
	wide := [2]int{}
	for _, r := range rows {
		wide[0], wide[1] = max(wide[0], len(r.What)), max(wide[1], len(r.Safe), len("pgfsm"))
	}
	line := func(what, safe, naive string) {
		fmt.Fprintf(w.stdout, "%-*s  %*s  %s\n", wide[0], what, wide[1], safe, naive)
	}
	line("", "pgfsm", "naive")
	for _, r := range rows {
		line(r.What, r.Safe, r.Naive)
	}
	fmt.Fprintln(w.stdout)
	for _, f := range m.Faults {
		fmt.Fprintf(w.stdout, "%s %s\n", k.mark(false), visible.Text(f))
	}
	fmt.Fprintf(w.stdout, "metrics %s\ntable   %s\n", visible.Text(metrics), visible.Text(table))
	if code == exitCould {
		fmt.Fprintf(w.stderr, "pgfsm: %d of pgfsm's runs and %d of the naive agent's failed: the figures are not of all cases\n",
			m.Safe.Failed, m.Naive.Failed)
	}
	return exit(code)
}

// oneline makes an error one line without secrets.
func (a *app) oneline(err error) string {
	return strings.TrimSpace(visible.Text(a.secrets.String(err.Error())))
}
