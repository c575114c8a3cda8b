package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

func newResume(w world) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "resume [ID...]",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withApp(w, func(a *app) error {
				if a.Loaded.Ledger == "" {
					return errors.New("the configuration names no ledger, so no run waits: add `ledger: \"sqlite:pgfsm.db\"`")
				}
				return a.withRunner(cmd.Context(), func(r *runner.Runner, l *openedLedger) (err error) {
					for i := range args {
						if args[i], err = l.findRun(cmd.Context(), args[i]); err != nil {
							return err
						}
					}
					if len(args) == 1 {
						return a.resumeOne(cmd.Context(), r, args[0])
					}
					return a.resumeAll(cmd.Context(), r, args)
				})
			})
		},
	}
	o.register(cmd)
	return cmd
}

// resumeOne resumes one run.
func (a *app) resumeOne(ctx context.Context, r *runner.Runner, id string) error {
	got, err := r.Resume(ctx, id, a.watch())
	if errors.Is(err, ledger.ErrUndecided) {
		fmt.Fprintf(a.w.stderr, "pgfsm: %s\n", visible.Error(err))
		return cli.Exit(cli.ExitPending)
	}
	if err != nil {
		return a.stopped(got, noRun(id, err))
	}
	return a.printResult(got)
}

// resumedDocument is the --json form of several resumed runs.
type resumedDocument struct {
	SchemaVersion int               `json:"schema_version"`
	Runs          []present.Outcome `json:"runs"`
	Stopped       []stoppedResume   `json:"stopped"`
}

// stoppedResume is a run that cannot be resumed.
type stoppedResume struct {
	RunID string `json:"run_id"`
	Error string `json:"error"`
}

// resumeAll resumes several runs, one after the other: the runs with ids or, without ids, every approved run.
func (a *app) resumeAll(ctx context.Context, r *runner.Runner, ids []string) error {
	named := len(ids) > 0
	if !named {
		var err error
		if ids, err = r.Approved(ctx); err != nil {
			return err
		}
	}
	doc := resumedDocument{SchemaVersion: cli.SchemaVersion, Runs: []present.Outcome{}, Stopped: []stoppedResume{}}
	k := newInk(a.w)
	worst := cli.ExitYes
	for _, id := range ids {
		if !a.json {
			fmt.Fprintf(a.w.stdout, "run %s\n", visible.Text(id))
		}
		got, err := r.Resume(ctx, id, a.watch())
		if err == nil {
			one := a.outcome(got)
			doc.Runs, worst = append(doc.Runs, one), worse(worst, exitCode(got.Outcome))
			if !a.json {
				printAnswer(a.w.stdout, k, one, answerOptions{config: a.flag})
				fmt.Fprintln(a.w.stdout)
			}
			continue
		}
		err = noRun(id, err)
		fmt.Fprintf(a.w.stderr, "pgfsm: %s\n", visible.Lines(err.Error()))
		doc.Stopped = append(doc.Stopped, stoppedResume{id, err.Error()})
		switch {
		case errors.Is(err, ledger.ErrUndecided):
			worst = worse(worst, cli.ExitPending)
		case named || !errors.Is(err, ledger.ErrTaken): // without ids, skip runs that other processes own
			worst = cli.ExitFailed
		}
		if ctx.Err() != nil {
			break
		}
	}
	if a.json {
		if err := cli.PrintJSON(a.w.stdout, doc); err != nil {
			return err
		}
	} else if len(ids) == 0 {
		held, err := r.Undecided(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.w.stdout, noneDecided(len(held)))
	}
	return cli.Exit(worst)
}

// noneDecided returns a text that no run can be resumed, with the number of runs that wait for a decision.
func noneDecided(held int) string {
	switch held {
	case 0:
		return "No run waits to be resumed."
	case 1:
		return "No run is decided. 1 run still waits for a decision."
	}
	return fmt.Sprintf("No run is decided. %d runs still wait for a decision.", held)
}

// worse returns the worse of two exit codes. The order is: could not, no, pending, yes.
func worse(a, b int) int {
	order := [...]int{cli.ExitYes: 0, cli.ExitNo: 2, cli.ExitFailed: 3, cli.ExitPending: 1}
	if order[b] > order[a] {
		return b
	}
	return a
}
