package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy/ruling"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
)

// diffOptions are the flags of policy diff.
type diffOptions struct {
	options
	traces string
	failOn []string
	prove  bool
}

func newPolicyDiff(w world) *cobra.Command {
	var o diffOptions
	cmd := newCommand("diff OLD NEW --traces DIR", cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
		if o.prove {
			return o.withApp(w, func(a *app) error { return a.comparePolicies(cmd.Context(), args[0], args[1]) })
		}
		// The value comes from an unset variable.
		if cmd.Flags().Changed("fail-on") && len(o.failOn) == 0 {
			return errors.New("--fail-on names no kind of change")
		}
		return o.comparePolicies(cmd.Context(), w, args[0], args[1])
	})
	cmd.Flags().StringVar(&o.traces, "traces", "traces", "the traces, a file or a folder")
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil, "exit with 1 on changes of these kinds, separated by commas")
	cmd.Flags().BoolVar(&o.prove, "prove", false,
		"compare the decisions about every call of the configuration's tools, without traces")
	o.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("prove", "traces")
	cmd.MarkFlagsMutuallyExclusive("prove", "fail-on")
	return cmd
}

func (o *diffOptions) comparePolicies(ctx context.Context, w world, oldPath, newPath string) error {
	for _, kind := range o.failOn {
		if !slices.Contains(ruling.Kinds(), kind) {
			return fmt.Errorf("--fail-on %s: use %s", kind, strings.Join(ruling.Kinds(), ", "))
		}
	}

	replayer, err := newReplayer()
	if err != nil {
		return err
	}
	comparer := backtest.Comparer{Replayer: replayer}
	if comparer.Old, err = backtest.ReadJudge(oldPath, safefile.ReadTrusted); err != nil {
		return err
	}
	if comparer.New, err = backtest.ReadJudge(newPath, safefile.ReadTrusted); err != nil {
		return err
	}

	paths, err := traces.Files([]string{o.traces})
	if err != nil {
		return err
	}

	// A pipe or a link would block or leave the folder, so these entries are reported unread.
	odd, err := oddTraces(o.traces)
	if err != nil {
		return err
	}

	paths = slices.Sorted(slices.Values(slices.Concat(paths, odd)))
	bar := cli.NewBar(w.stderr, "judging", len(paths))
	calls := make([]backtest.Call, len(paths))
	inParallel(len(paths), func(i int) {
		if ctx.Err() != nil {
			return
		}
		var t *traces.Trace
		err := errors.New("it is not a regular file, and links in a folder are not followed")
		if _, isOdd := slices.BinarySearch(odd, paths[i]); !isOdd {
			t, err = traces.ReadFile(paths[i])
		}
		calls[i] = comparer.Compare(paths[i], t, err)
		bar.Add(1)
	})

	bar.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}

	return o.printReport(w, backtest.NewReport(calls))
}

// printReport prints the report and returns the exit code. An unusable trace is worse than any
// change.
func (o *diffOptions) printReport(w world, r *backtest.Report) error {
	code := cli.ExitYes
	switch {
	case r.Unusable > 0 || len(r.Unknown) > 0:
		code = cli.ExitFailed
	case r.HasChange(o.failOn):
		code = cli.ExitNo
	}

	doc := struct {
		SchemaVersion int `json:"schema_version"`
		*backtest.Report
	}{cli.SchemaVersion, r}
	return w.printDocument(o.json, doc, code, func(out io.Writer, k ink) {
		for _, e := range r.Errors {
			fmt.Fprintf(w.stderr, "pgfsm: %s cannot be used: %s\n", visible.Text(e.Path), visible.Text(e.Error))
		}
		for _, c := range r.Unknown {
			fmt.Fprintf(w.stderr, "pgfsm: %s cannot be compared: its run did not record %s\n", visible.Text(c.Path),
				visible.Text(strings.Join(c.Unknown, ", ")))
		}
		templatePrinter("diff", r)(out, k)
	})
}

// changedGrounds names the policy that decides, and the one that decided before if it is another,
// and describes a change of the risk.
func changedGrounds(before, after *ruling.Ruling) string {
	grounds := decidedBy(after)
	if previous := decidedBy(before); previous != grounds {
		grounds = previous + " -> " + grounds
	}
	if before.RiskMode != after.RiskMode || before.RiskScore != after.RiskScore {
		grounds += fmt.Sprintf("; risk %s %d -> %s %d", visible.Text(before.RiskMode), before.RiskScore,
			visible.Text(after.RiskMode), after.RiskScore)
	}
	return grounds
}

// decidedBy returns the name of the deciding policy, and its condition.
func decidedBy(r *ruling.Ruling) string {
	name := fmt.Sprintf("%q", visible.Text(r.Policy))
	if r.Condition != "" {
		name += " (" + visible.Text(r.Condition) + ")"
	}
	if r.GaveUp() {
		name += " [" + visible.Text(string(r.Code)) + "]"
	}
	return name
}

// changedTerms describes the differences between two holds.
func changedTerms(before, after *ruling.Ruling) string {
	anyone := func(roles []string) string { return cmp.Or(strings.Join(roles, ", "), anyApprover) }
	var parts []string
	for _, p := range []struct{ what, before, after string }{
		{"quorum", fmt.Sprint(before.Quorum), fmt.Sprint(after.Quorum)},
		{"approvers", anyone(before.Approvers), anyone(after.Approvers)},
		{"sign-in", signIn(before), signIn(after)},
		{"until", cmp.Or(before.Expires, "passed"), cmp.Or(after.Expires, "passed")},
	} {
		if p.before != p.after {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", p.what, p.before, p.after))
		}
	}
	return visible.Text(strings.Join(parts, "; "))
}

// signIn describes the maximum time between an approver's sign-in at the console and the vote.
func signIn(t *ruling.Ruling) string {
	if t.Fresh == 0 {
		return "at any time"
	}
	return "within " + (time.Duration(t.Fresh) * time.Millisecond).String()
}

// oddTraces returns the entries of a folder that have names of traces and are not regular files.
// The command reports them unread.
func oddTraces(folder string) (paths []string, err error) {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !e.Type().IsRegular() && traces.IsName(e.Name()):
			paths = append(paths, path)
		}
		return nil
	})
	slices.Sort(paths)
	return paths, err
}
