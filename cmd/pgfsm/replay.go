package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/traces"
)

type replayOptions struct {
	head string
	json bool
	all  bool
}

func newReplay(w world) *cobra.Command {
	var o replayOptions
	cmd := newCommand("replay TRACE...", cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
		if err := notEmpty(cmd, "head"); err != nil {
			return err
		}
		return replayTraces(cmd.Context(), w, o, args)
	})
	cmd.Flags().StringVar(&o.head, "head", "", "the head that the trace must have (one trace only)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVarP(&o.all, "verbose", "v", false, "print every transition of every trace")
	return cmd
}

func replayTraces(ctx context.Context, w world, o replayOptions, args []string) error {
	paths, err := traces.Files(args)
	if err != nil {
		return err
	}

	if o.head != "" {
		if _, err := canonical.ParseDigest(o.head); err != nil {
			return fmt.Errorf("--head: %w", err)
		}
		if len(paths) != 1 {
			return fmt.Errorf("--head names one trace's head, and there are %d traces", len(paths))
		}
	}

	replayer, err := newReplayer()
	if err != nil {
		return err
	}

	bar := cli.NewBar(w.stderr, "replaying", len(paths))
	results := make([]traces.Checked, len(paths))
	inParallel(len(paths), func(i int) {
		if ctx.Err() == nil {
			results[i], _, _ = replayer.CheckFile(paths[i], canonical.Digest(o.head))
			bar.Add(1)
		}
	})

	bar.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}

	return reportReplay(w, o, results)
}

// inParallel calls do for 0..n-1, on all processors.
func inParallel(n int, do func(int)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
}

// worstOf returns the exit code for trace files, and the number of files that do not replay. A
// changed or diverging trace is worse than an unreadable one.
func worstOf(results []traces.Checked) (code, bad int) {
	for _, c := range results {
		switch {
		case c.OK:
			continue
		case c.Code != traces.CodeUnreadable:
			code = cli.ExitNo
		case code == cli.ExitYes:
			code = cli.ExitFailed
		}
		bad++
	}
	return code, bad
}

// reportReplay prints the results of all traces.
func reportReplay(w world, o replayOptions, results []traces.Checked) error {
	code, bad := worstOf(results)
	return w.printDocument(o.json, cli.Document("ok", bad == 0, "traces", results), code, templatePrinter("replayed", struct {
		Traces    []traces.Checked
		Whole     bool
		Good, Bad int
	}{results, len(results) == 1 || o.all, len(results) - bad, bad}))
}
