package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/risk"
	"pgfsm/policy/ruling"
	"pgfsm/safefile"
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

func newPolicyDiff(w world) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff OLD NEW --traces DIR",
		Short: "Show which recorded calls another policy would decide differently",
		Long: `diff judges every call of the traces that reached the policy gate by OLD and by NEW, and counts the
changes. OLD and NEW are a policy.yaml each, with the risk rules that the trace was recorded with, or a folder
with policy.yaml and risk.yaml. diff calls nothing and writes nothing. Kinds of change:

  newly-allowed, newly-held, newly-denied  another decision
  hold-weakened                            held by both; now fewer must agree, more roles may, or it waits longer
  hold-strengthened                        held by both; the opposite
  hold-changed                             held by both; weaker and stronger at once, or other roles
  policy-changed                           another policy decides, or another of its conditions, or one that fails
  risk-changed                             another risk mode or score

The last two may come with another kind. Exit code 1 if a change is of a kind that --fail-on names, 2 if a trace cannot be
used; diff names it.`,
		Example: `  pgfsm policy diff policy.yaml new/policy.yaml --traces traces --fail-on newly-allowed,hold-weakened`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("fail-on") && len(o.failOn) == 0 { // a variable that was not set, and no wish for less
				return errors.New("--fail-on names no kind of change")
			}
			return o.diff(cmd.Context(), w, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&o.traces, "traces", "traces", "the traces, a file or a folder")
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil, "exit with 1 on changes of these kinds, separated by commas")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many traces to judge in parallel")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

// readJudge reads a policy file, or a folder with policy.yaml and perhaps risk.yaml.
func readJudge(path string) (*ruling.Judge, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file := path
	var rated *risk.Content
	if info.IsDir() {
		file = filepath.Join(path, "policy.yaml")
		ladder := filepath.Join(path, "risk.yaml")
		if _, err := os.Lstat(ladder); err == nil {
			if rated, err = config.LoadRisk(ladder, safefile.ReadTrusted); err != nil {
				return nil, err
			}
		}
	}
	p, err := config.LoadPolicy(file, safefile.ReadTrusted)
	return ruling.NewJudge(p, rated), err
}

// compared is what both sides say of one call.
type compared struct {
	Path   string         `json:"path"`
	RunID  string         `json:"run_id"`
	Tool   string         `json:"tool"` // server and tool
	Old    string         `json:"old"`
	New    string         `json:"new"`
	By     string         `json:"by"` // the policy of NEW that decided
	Kinds  []string       `json:"kinds"`
	Before *ruling.Ruling `json:"before"`
	After  *ruling.Ruling `json:"after"`

	judged bool   // it came as far as the policy gate
	fault  string // why the trace cannot be used
}

func (o *diffOptions) diff(ctx context.Context, w world, oldPath, newPath string) error {
	for _, kind := range o.failOn {
		if !slices.Contains(ruling.Kinds(), kind) {
			return fmt.Errorf("--fail-on %s: use %s", kind, strings.Join(ruling.Kinds(), ", "))
		}
	}
	before, err := readJudge(oldPath)
	if err != nil {
		return err
	}
	after, err := readJudge(newPath)
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
	odd, err := oddTraces(o.traces)
	if err != nil {
		return err
	}
	paths = slices.Sorted(slices.Values(slices.Concat(paths, odd)))
	bar := newBar(w, "judging", len(paths))
	all := make([]compared, len(paths))
	replayer := traces.NewReplayer(machine, nil)
	each(max(1, o.jobs), len(paths), func(i int) {
		if ctx.Err() == nil {
			_, isOdd := slices.BinarySearch(odd, paths[i])
			all[i] = compareOne(replayer, paths[i], isOdd, before, after)
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

// oddTraces are what is called as a trace in a folder and is no file: nothing of it is read, and it is not passed over.
func oddTraces(folder string) (paths []string, err error) {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !e.Type().IsRegular() && isTrace(e.Name()) {
			paths = append(paths, path)
		}
		return err
	})
	slices.Sort(paths)
	return paths, err
}

func compareOne(replayer *traces.Replayer, path string, odd bool, before, after *ruling.Judge) compared {
	c := compared{Path: filepath.ToSlash(path)}
	if err := c.compare(replayer, path, odd, before, after); err != nil {
		c.fault = err.Error()
	}
	return c
}

func (c *compared) compare(replayer *traces.Replayer, path string, odd bool, before, after *ruling.Judge) error {
	if odd {
		return errors.New("it is not a regular file, and links in a folder are not followed")
	}
	t, err := readTrace(path)
	if err != nil {
		return err
	}
	c.RunID = t.Header.RunID
	run, err := replayer.Replay(t)
	if err != nil {
		return err
	}
	question, ok := run.Question()
	if !ok {
		return nil
	}
	if c.Before, err = before.Judge(run.Bundle(), question); err != nil {
		return err
	}
	if c.After, err = after.Judge(run.Bundle(), question); err != nil {
		return err
	}
	c.judged, c.Tool = true, question.Server+" "+question.Tool.Name
	c.Old, c.New, c.By = c.Before.Decision, c.After.Decision, c.After.Policy
	c.Kinds = ruling.Changes(c.Before, c.After)
	return nil
}
