package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// runOptions are the flags of the commands that start a run.
type runOptions struct {
	options
	task string
	wait time.Duration // maximum wait for the decision about a held call; 0: do not wait
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	o.options.addFlags(cmd)
	o.addGrantFlag(cmd)
	cmd.Flags().StringVar(&o.task, "task", "",
		"the task whose calls grants count")
	cmd.Flags().DurationVar(&o.wait, "wait", 0,
		"if the call is held, wait this long for the decision, such as 5m")
}

// checkFlags returns an error for values that a mistake in a script produces, such as an empty
// task.
func (o *runOptions) checkFlags(cmd *cobra.Command) error {
	if cmd.Flags().Changed("wait") && o.wait <= 0 {
		return fmt.Errorf("--wait: %s is not a positive duration; write one such as 5m", o.wait)
	}
	if !cmd.Flags().Changed("task") {
		return nil
	}
	if err := policy.CheckTaskID(o.task); err != nil {
		return fmt.Errorf("--task: %w", err)
	}
	return nil
}

// newRun makes the command pgfsm run.
func newRun(w world) *cobra.Command {
	var o runOptions
	cmd := newCommand("run QUESTION", cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
		text := []byte(strings.Join(args, " "))
		if len(args) == 1 && args[0] == "-" {
			var err error
			if text, err = readQuestion(w.stdin); err != nil {
				return err
			}
		}
		if len(text) == 0 {
			return errors.New("the question is empty")
		}
		if err := o.checkFlags(cmd); err != nil {
			return err
		}
		return o.withApp(w, func(a *app) error {
			return a.runRequest(cmd.Context(), states.KindAsk, text, &o)
		})
	})

	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.planner, "planner", "", "the planner: auto, router or llm (default: planner.mode)")

	return cmd
}

// readQuestion reads a whole question. It refuses a question that is too long for every
// configuration, before a run begins.
func readQuestion(stdin io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(stdin, policy.MaxInputBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > policy.MaxInputBytes {
		return nil, fmt.Errorf("standard input has more than %d bytes, which no configuration lets pass",
			policy.MaxInputBytes)
	}
	return text, nil
}

func newCall(w world) *cobra.Command {
	var o runOptions
	cmd := newCommand("call SERVER TOOL ARGUMENTS", cobra.ExactArgs(3), func(cmd *cobra.Command, args []string) error {
		plan, err := explain.Plan(args[0], args[1], "ARGUMENTS", args[2])
		if err != nil {
			return err
		}
		if err := o.checkFlags(cmd); err != nil {
			return err
		}
		return o.withApp(w, func(a *app) error {
			return a.runRequest(cmd.Context(), states.KindCall, plan, &o)
		})
	})
	o.addFlags(cmd)
	return cmd
}

// timestamp returns the current time in the form of all recorded times.
func timestamp() string { return time.Now().UTC().Format(policy.TimeForm) }

// runRequest takes one request through the machine and prints the result.
func (a *app) runRequest(ctx context.Context, kind string, text []byte, o *runOptions) error {
	return a.withRunner(ctx, func(r *runner.Runner, l *openedLedger) error {
		requester, err := a.identifyCaller(ctx, l, "ask")
		if err != nil {
			return err
		}
		result, err := r.Run(ctx, runner.Request{
			Actor: requester.Name,
			Token: requester.Token,

			Principal: requester.Principal,
			Kind:      kind,
			Text:      text,
			Task:      o.task,
		}, a.stepPrinter())
		if err != nil {
			return a.printStopped(result, err)
		}
		if o.wait > 0 && result.Outcome.Type == states.TypePending {
			return a.awaitDecision(ctx, r, l, result, o.wait)
		}
		return a.printResult(ctx, l, result)
	})
}

// identifyCaller returns the owner of the token in the environment. Without a ledger (a gateway that
// records nothing) or a token, it returns the user of the operating system, who can do the same without a token.
func (a *app) identifyCaller(ctx context.Context, l *openedLedger, do string) (gateway.Identity, error) {
	if l == nil || a.w.env(tokenVariable) == "" {
		return gateway.Identity{Name: localActor()}, nil
	}
	who, err := l.authorizeCaller(ctx, ledger.ActCall)
	if err != nil {
		return gateway.Identity{}, fmt.Errorf("%s: %w; unset it to %s as %s", tokenVariable, err, do, localActor())
	}
	return gateway.Identity{Name: who.Name, Token: who.TokenID, Principal: who.Principal()}, nil
}

// awaitDecision waits for the decision about a held run, and prints how the run ended.
func (a *app) awaitDecision(ctx context.Context, r *runner.Runner, l *openedLedger, waiting runner.Result,
	wait time.Duration) error {
	if !a.json {
		a.answerPrinter(a.newOutcome(ctx, l, waiting), true)(a.w.stdout, newInk(a.w))
		fmt.Fprintf(a.w.stdout, "\nwaiting up to %s for the decision\n", wait)
	}
	result, err := r.Await(ctx, waiting.Run.ID(), wait, a.stepPrinter())
	switch {
	case errors.Is(err, runner.ErrWaiting):
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s is not decided yet, or another process has it; it stays in the ledger\n", waiting.Run.ID())
		if a.json {
			return a.printResult(ctx, l, waiting)
		}
		return cli.Exit(cli.ExitPending)
	case err != nil:
		return a.printStopped(result, err)
	}
	return a.printResult(ctx, l, result)
}

// newOutcome returns a result in its printed form. If the ledger is in the folder of traces,
// newOutcome also writes the run's trace there.
func (a *app) newOutcome(ctx context.Context, l *openedLedger, result runner.Result) present.Outcome {
	doc := present.NewOutcome(result.Run, result.Outcome, result.Head, a.Loaded.Ledger)
	if !a.Loaded.DefaultLedger {
		return doc
	}

	path, err := l.writeTraceFile(context.WithoutCancel(ctx), result.Run.ID(), a.Loaded.TracesDir)
	if err != nil {
		a.w.warn("warning: the run is in the ledger, and its trace cannot be written: " + err.Error())
		return doc
	}

	doc.Trace = path
	return doc
}

// writeTraceFile writes the trace of a run that has ended or is held into a folder, and returns its
// path. The file is not flushed to disk, because it can be derived from the ledger again.
func (o *openedLedger) writeTraceFile(ctx context.Context, run, folder string) (path string, err error) {
	p, err := newReplayer()
	if err != nil {
		return "", err
	}

	var doc []byte
	err = o.View(ctx, func(r ledger.Reader) error {
		doc, err = ledger.Trace(ctx, r, run, p)
		return err
	})
	if err != nil {
		return "", err
	}

	path = filepath.Join(folder, traces.Name(run))
	return path, safefile.WriteUnflushed(path, doc, 0o600)
}

// printResult prints how a run ended, and returns it as an exit code.
func (a *app) printResult(ctx context.Context, l *openedLedger, result runner.Result) error {
	doc := a.newOutcome(ctx, l, result)
	return a.printDocument(doc, exitCode(result.Outcome), a.answerPrinter(doc, false))
}

// exitCode returns the exit code of an outcome.
func exitCode(o states.Outcome) int {
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary, states.TypeFinalAnswer:
		return cli.ExitYes
	case states.TypeBlocked:
		return cli.ExitNo
	case states.TypePending:
		return cli.ExitPending
	}
	return cli.ExitFailed
}

// printStopped prints the progress of a run whose record could not be written. The run may have
// made its call.
func (a *app) printStopped(result runner.Result, cause error) error {
	if result.Outcome.Type == "" {
		return cause
	}
	doc := present.NewOutcome(result.Run, result.Outcome, "", a.Loaded.Ledger)
	if !a.json {
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s stopped at %s, effect: %s\n  %s\n", doc.RunID, doc.State, doc.Effect,
			newInk(a.w).trackText(doc.Track))
		return cause
	}
	if err := cli.PrintJSON(a.w.stdout, doc); err != nil {
		return errors.Join(cause, err)
	}
	return cli.Exit(cli.ExitFailed)
}

// warn prints a line on standard error.
func (w world) warn(line string) {
	if w.log != nil {
		w.log.Warn(visible.Line(line))
		return
	}
	fmt.Fprintf(w.stderr, "pgfsm: %s\n", visible.Line(line))
}

func newResume(w world) *cobra.Command {
	var o options
	cmd := newCommand("resume [ID...]", nil, func(cmd *cobra.Command, args []string) error {
		return o.withApp(w, func(a *app) error {
			return a.withRunner(cmd.Context(), func(r *runner.Runner, l *openedLedger) (err error) {
				for i := range args {
					if args[i], err = l.findRun(cmd.Context(), args[i]); err != nil {
						return err
					}
				}
				if len(args) == 1 {
					return a.resumeOne(cmd.Context(), r, l, args[0])
				}
				return a.resumeAll(cmd.Context(), r, l, args)
			})
		})
	})

	o.addFlags(cmd)
	return cmd
}

// resumeOne resumes one run.
func (a *app) resumeOne(ctx context.Context, r *runner.Runner, l *openedLedger, id string) error {
	result, err := r.Resume(ctx, id, a.stepPrinter())
	if errors.Is(err, ledger.ErrUndecided) {
		fmt.Fprintf(a.w.stderr, "pgfsm: %s\n", visible.Error(err))
		return cli.Exit(cli.ExitPending)
	}
	if err != nil {
		return a.printStopped(result, noRun(id, err))
	}
	return a.printResult(ctx, l, result)
}

// stoppedResume is a run that cannot be resumed.
type stoppedResume struct {
	RunID string `json:"run_id"`
	Error string `json:"error"`
}

// resumeAll resumes several runs, one after the other: the runs with ids or, without ids, every
// approved run.
func (a *app) resumeAll(ctx context.Context, r *runner.Runner, l *openedLedger, ids []string) error {
	named := len(ids) > 0
	if !named {
		var err error
		if ids, err = r.Approved(ctx); err != nil {
			return err
		}
	}

	runs, stopped := []present.Outcome{}, []stoppedResume{}
	k := newInk(a.w)
	worst := cli.ExitYes

	for _, id := range ids {
		if !a.json {
			fmt.Fprintf(a.w.stdout, "run %s\n", visible.Text(id))
		}

		result, err := r.Resume(ctx, id, a.stepPrinter())
		if err == nil {
			outcome := a.newOutcome(ctx, l, result)
			runs, worst = append(runs, outcome), worseCode(worst, exitCode(result.Outcome))
			if !a.json {
				a.answerPrinter(outcome, false)(a.w.stdout, k)
				fmt.Fprintln(a.w.stdout)
			}
			continue
		}

		// A run that cannot be resumed does not keep the others from being resumed.
		err = noRun(id, err)
		fmt.Fprintf(a.w.stderr, "pgfsm: %s\n", visible.Lines(err.Error()))
		stopped = append(stopped, stoppedResume{id, err.Error()})

		switch {
		case errors.Is(err, ledger.ErrUndecided):
			worst = worseCode(worst, cli.ExitPending)
		case named || !errors.Is(err, ledger.ErrTaken): // without ids, skip runs that other processes own
			worst = cli.ExitFailed
		}

		if ctx.Err() != nil {
			break
		}
	}

	if a.json {
		doc := cli.Document("runs", runs, "stopped", stopped)
		return errors.Join(cli.PrintJSON(a.w.stdout, doc), cli.Exit(worst))
	}

	if len(ids) == 0 {
		waiting, err := r.Undecided(ctx)
		if err != nil {
			return err
		}
		none := "No run waits to be resumed."
		if n := len(waiting); n > 0 {
			none = "No run is decided. " +
				cli.Count(n, "run still waits for a decision.", "runs still wait for a decision.")
		}
		fmt.Fprintln(a.w.stdout, none)
	}

	return cli.Exit(worst)
}

// worseCode returns the worse of two exit codes. The order is: could not, no, pending, yes.
func worseCode(a, b int) int {
	order := [...]int{cli.ExitYes: 0, cli.ExitNo: 2, cli.ExitFailed: 3, cli.ExitPending: 1}
	if order[b] > order[a] {
		return b
	}
	return a
}
