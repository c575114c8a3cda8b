package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/settings"
	"pgfsm/policy/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

// diffOptions are the flags of policy diff.
type diffOptions struct {
	traces string
	failOn []string
	jobs   int
	json   bool
}

// changes are the kinds of change that --fail-on knows, by the decision after it.
var changes = map[string]string{"newly-allowed": rules.Allow, "newly-denied": rules.Deny, "newly-held": rules.Pending}

func newPolicyDiff(w world) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff OLD NEW --traces DIR",
		Short: "Ask of recorded calls what another policy would have decided",
		Long: `diff takes every call of the traces that came as far as the policy gate, judges it by OLD and by NEW, and counts what
changes. OLD and NEW are a policy.yaml each, judged with the risk rules that the trace was recorded with, or a folder
with policy.yaml and risk.yaml. Nothing is called, and nothing is written.
Exit code 1 if a change is of a kind that --fail-on names, 2 if a trace cannot be used.`,
		Example: `  pgfsm policy diff policy.yaml new/policy.yaml --traces traces --fail-on newly-allowed`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.diff(cmd.Context(), w, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&o.traces, "traces", "traces", "the traces, a file or a folder")
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil, "exit with 1 on: newly-allowed, newly-denied, newly-held")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many traces to judge at once")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

// side is one of the two that are compared.
type side struct {
	policy *rules.Content
	risk   *risk.Content // nil: the trace's own

	mu      sync.Mutex
	bundles map[canonical.Digest]*policy.Bundle // by the digest of the trace's own
}

func readSide(path string) (*side, error) {
	s := &side{bundles: make(map[canonical.Digest]*policy.Bundle)}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file := path
	if info.IsDir() {
		file = filepath.Join(path, "policy.yaml")
		ladder := filepath.Join(path, "risk.yaml")
		if _, err := os.Lstat(ladder); err == nil {
			if s.risk, err = settings.LoadRisk(ladder, ours); err != nil {
				return nil, err
			}
		}
	}
	s.policy, err = settings.LoadPolicy(file, ours)
	return s, err
}

// bundle is what a trace was recorded with, but for risk rules and policies. It is compiled once for each that there is.
func (s *side) bundle(recorded *policy.Bundle) (*policy.Bundle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bundles[recorded.Digest()]; b != nil {
		return b, nil
	}
	b, err := withPolicy(*recorded.Content(), s.risk, s.policy)
	if err == nil {
		s.bundles[recorded.Digest()] = b
	}
	return b, err
}

// compared is what both sides say of one call.
type compared struct {
	Path  string `json:"path"`
	RunID string `json:"run_id"`
	Tool  string `json:"tool"` // server and tool
	Old   string `json:"old"`
	New   string `json:"new"`
	By    string `json:"by"`             // the policy of NEW that decided
	Error string `json:"error,omitzero"` // why the trace cannot be used

	judged bool // it came as far as the policy gate
}

func (o *diffOptions) diff(ctx context.Context, w world, oldPath, newPath string) error {
	for _, kind := range o.failOn {
		if changes[kind] == "" {
			return fmt.Errorf("--fail-on %s: use newly-allowed, newly-denied or newly-held", kind)
		}
	}
	before, err := readSide(oldPath)
	if err != nil {
		return err
	}
	after, err := readSide(newPath)
	if err != nil {
		return err
	}
	machine, err := states.NewMachine()
	if err != nil {
		return err
	}
	paths, err := traceFiles([]string{o.traces})
	if err != nil {
		return err
	}
	bar := newBar(w, "judging", len(paths))
	all := make([]compared, len(paths))
	replayer := traces.NewReplayer(machine, nil)
	each(max(1, o.jobs), len(paths), func(i int) {
		if ctx.Err() == nil {
			all[i] = compareOne(replayer, paths[i], before, after)
			bar.Add(1)
		}
	})
	bar.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.report(w, all)
}

// newBar is a progress bar on a terminal, and silent elsewhere.
func newBar(w world, what string, n int) *progressbar.ProgressBar {
	f, ok := w.stderr.(*os.File)
	if !ok || !isTerminal(f) || n < 2 {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(f), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowCount(), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(50*time.Millisecond))
}

func compareOne(replayer *traces.Replayer, path string, before, after *side) compared {
	c := compared{Path: filepath.ToSlash(path)}
	t, err := readTrace(path, replayer.Read)
	if err != nil {
		c.Error = err.Error()
		return c
	}
	c.RunID = t.Header.RunID
	run, err := replayer.Replay(t)
	if err != nil {
		c.Error = err.Error()
		return c
	}
	question, ok := run.Question()
	if !ok {
		return c
	}
	c.judged, c.Tool = true, question.Server+" "+question.Tool.Name
	for _, s := range []struct {
		side *side
		word *string
	}{{before, &c.Old}, {after, &c.New}} {
		b, err := s.side.bundle(run.Bundle())
		if err != nil {
			c.Error = err.Error()
			return c
		}
		got := b.Decide(question)
		*s.word, c.By = word(got.Verdict), got.Policy
	}
	return c
}

func (o *diffOptions) report(w world, all []compared) error {
	decided := []string{rules.Allow, rules.Pending, rules.Deny}
	counts := make(map[[2]string]int)
	code, judged, unusable := exitYes, 0, 0
	var changed []compared
	for _, c := range all {
		switch {
		case c.Error != "":
			unusable++
		case c.judged:
			judged++
			counts[[2]string{c.Old, c.New}]++
			if c.Old != c.New {
				changed = append(changed, c)
				fails := func(kind string) bool { return changes[kind] == c.New }
				if slices.ContainsFunc(o.failOn, fails) {
					code = exitNo
				}
			}
		}
	}
	if unusable > 0 {
		code = exitCould
	}
	if o.json {
		type cell struct {
			Old   string `json:"old"`
			New   string `json:"new"`
			Calls int    `json:"calls"`
		}
		var cells []cell
		for _, from := range decided {
			for _, to := range decided {
				cells = append(cells, cell{from, to, counts[[2]string{from, to}]})
			}
		}
		err := printJSON(w.stdout, struct {
			SchemaVersion int        `json:"schema_version"`
			Traces        int        `json:"traces"`
			Judged        int        `json:"judged"`
			Unusable      int        `json:"unusable"`
			Decisions     []cell     `json:"decisions"`
			Changed       []compared `json:"changed"`
		}{schemaVersion, len(all), judged, unusable, cells, changed})
		return errors.Join(err, exit(code))
	}
	for _, c := range all {
		if c.Error != "" {
			fmt.Fprintf(w.stderr, "pgfsm: %s cannot be used: %s\n", visible.Text(c.Path), visible.Text(c.Error))
		}
	}
	for _, c := range changed {
		fmt.Fprintf(w.stdout, "%s -> %s  %s  by %q  %s\n", c.Old, c.New, visible.Text(c.Tool), visible.Text(c.By), visible.Text(c.Path))
	}
	for _, from := range decided {
		for _, to := range decided {
			if n := counts[[2]string{from, to}]; n > 0 {
				fmt.Fprintf(w.stdout, "%-8s -> %-8s %d\n", from, to, n)
			}
		}
	}
	fmt.Fprintf(w.stdout, "%s, %d came as far as the policy, %d change\n", count(len(all), "trace"), judged, len(changed))
	return exit(code)
}
