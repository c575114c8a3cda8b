package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	attacks "pgfsm/eval/attack"
	"pgfsm/eval/fromtraces"
	"pgfsm/policy/visible"
	"pgfsm/safefile"
	"pgfsm/states"
	"pgfsm/traces"
)

// fromTracesOptions are the flags of eval from-traces.
type fromTracesOptions struct {
	out  string
	jobs int
	json bool
}

func newEvalTraces(w world) *cobra.Command {
	var o fromTracesOptions
	cmd := &cobra.Command{
		Use:   "from-traces TRACE... -o FOLDER",
		Short: "Write a regression suite from stored traces",
		Long: `from-traces reads traces (files, or every *.json in a folder and below whose format is pgfsm.trace/v1), verifies each chain,
executes each trace again, and writes the decisions as cases for pgfsm eval attack. A call that was made becomes a benign call. A
refused call must be refused with the same code, and a held call must be held. Each suite is judged once by the traces' own
bundle.

Runs in a ledger are written as traces first: one by pgfsm ledger trace RUN -o FILE, all by pgfsm ledger trace --all -o FOLDER.

A suite contains requests and arguments, as the traces do. FOLDER must not exist yet, or be empty.

Exit code 1 if a trace was tampered with or diverges, 2 if one cannot be read. from-traces names such a trace and leaves it
out.`,
		Example: `  pgfsm eval from-traces traces -o regression
  pgfsm ledger trace --all -o traces && pgfsm eval from-traces traces -o regression`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.make(cmd.Context(), w, args) },
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "the folder to write to (required)")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many traces to execute in parallel")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

// executed is a trace that was read and executed again.
type executed struct {
	trace *traces.Trace
	run   *states.Run
	bad   replayed // why not
}

func (o *fromTracesOptions) make(ctx context.Context, w world, args []string) error {
	if o.out == "" {
		return errors.New("-o is missing: name a folder for the suites")
	}
	if o.jobs > attacks.MaxJobs {
		return fmt.Errorf("--jobs %d: at most %d traces are executed at a time", o.jobs, attacks.MaxJobs)
	}
	paths, err := traceFiles(args)
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
	bad, err := o.take(ctx, w, machine, maker, paths)
	if err != nil {
		return err
	}
	suites, left, err := maker.Finish(ctx, safefile.ReadTrusted)
	if err != nil {
		return err
	}
	return o.report(w, suites, left, bad)
}

// batchOfTraces is how many traces are in memory at once, for each job.
const batchOfTraces = 16

// take executes the traces again, batch by batch, and gives those that come out alike to the maker, in their order.
func (o *fromTracesOptions) take(ctx context.Context, w world, m *states.Machine, maker *fromtraces.Maker, paths []string) (bad []replayed, err error) {
	replayer, jobs := traces.NewReplayer(m, nil), max(1, o.jobs)
	bar := newBar(w, "reading traces", len(paths))
	defer bar.Finish()
	for batch := range slices.Chunk(paths, batchOfTraces*jobs) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all := make([]executed, len(batch))
		each(jobs, len(batch), func(i int) {
			all[i] = executeAgain(replayer, batch[i])
			bar.Add(1)
		})
		for i, e := range all {
			if !e.bad.OK {
				bad = append(bad, e.bad)
				continue
			}
			if err := maker.Add(batch[i], e.trace, e.run); err != nil {
				return nil, fmt.Errorf("%s: %w", batch[i], err)
			}
		}
	}
	return bad, nil
}

// executeAgain reads a trace and executes it again.
func executeAgain(p *traces.Replayer, path string) (e executed) {
	e.bad = replayOne(p, path, "")
	if !e.bad.OK {
		return e
	}
	var err error
	if e.trace, err = readTrace(path); err == nil {
		e.run, err = p.Replay(e.trace)
	}
	if err != nil { // the file was changed since
		e.bad.OK, e.bad.Code, e.bad.Error, e.bad.exit = false, "trace_unreadable", err.Error(), exitCould
	}
	return e
}

func (o *fromTracesOptions) report(w world, suites []fromtraces.Suite, left []fromtraces.Left, bad []replayed) error {
	slices.SortFunc(bad, func(a, b replayed) int { return cmp.Compare(a.Path, b.Path) })
	code := exitYes
	for _, r := range bad {
		if r.exit == exitNo || code == exitYes {
			code = r.exit
		}
	}
	if len(suites) == 0 && code == exitYes {
		code = exitCould // a suite without cases would be green for ever
	}
	for i := range suites {
		s := &suites[i]
		s.Cases, s.Tools = filepath.ToSlash(s.Cases), filepath.ToSlash(s.Tools)
	}
	if o.json {
		err := printJSON(w.stdout, struct {
			SchemaVersion int                `json:"schema_version"`
			OK            bool               `json:"ok"`
			Suites        []fromtraces.Suite `json:"suites"`
			Left          []fromtraces.Left  `json:"left_out"`
			Bad           []replayed         `json:"bad"`
		}{schemaVersion, code == exitYes, suites, left, bad})
		return errors.Join(err, exit(code))
	}
	out, k := w.stdout, newInk(w)
	for _, r := range bad {
		fmt.Fprintf(out, "%s %s\n  %s\n", k.mark(false), visible.Text(r.Path), visible.Text(r.Code+": "+r.Error))
	}
	for _, l := range left {
		fmt.Fprintf(out, "left out %s\n  %s\n", visible.Text(l.Path), visible.Text(l.Reason))
	}
	for _, s := range suites {
		fmt.Fprintf(out, "%s %s\n  pgfsm eval attack --tools %s --cases %s --bundle pgfsm.yaml\n", k.mark(true), count(s.Count, "case"),
			visible.Text(s.Tools), visible.Text(s.Cases))
	}
	if len(suites) == 0 {
		fmt.Fprintln(w.stderr, "pgfsm: no trace became a case")
	}
	return exit(code)
}
