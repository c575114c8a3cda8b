package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// timestamp returns the current time in the form of all recorded times.
func timestamp() string { return time.Now().UTC().Format(policy.TimeForm) }

// execute takes one request through the machine and prints the result.
func (a *app) execute(ctx context.Context, kind string, text []byte, o *runOptions) error {
	if o.wait > 0 && a.Loaded.Ledger == "" {
		return errors.New("--wait needs a ledger, in which approvers decide: name one in the configuration, as in ledger: \"sqlite:pgfsm.db\"")
	}
	return a.withRunner(ctx, func(r *runner.Runner, l *openedLedger) error {
		actor, err := a.requester(ctx, l)
		if err != nil {
			return err
		}
		got, err := r.Run(ctx, runner.Request{Actor: actor, Kind: kind, Text: text, Task: o.task}, a.watch())
		if err != nil {
			return a.stopped(got, err)
		}
		if o.wait > 0 && got.Outcome.Type == states.TypePending {
			return a.await(ctx, r, got, o.wait)
		}
		return a.printResult(got)
	})
}

// requester returns the name of the requester in [app.identity].
func (a *app) requester(ctx context.Context, l *openedLedger) (string, error) {
	who, err := a.identity(ctx, l, "ask")
	return who.Name, err
}

// identity returns the owner of the token in the environment. Without a ledger or a token, it returns the user of the operating system,
// who can do the same without a token.
func (a *app) identity(ctx context.Context, l *openedLedger, do string) (gateway.Identity, error) {
	if l == nil || a.w.env(tokenVariable) == "" {
		return gateway.Identity{Name: actor()}, nil
	}
	who, err := l.caller(ctx, ledger.ActCall)
	if err != nil {
		return gateway.Identity{}, fmt.Errorf("%s: %w; unset it to %s as %s", tokenVariable, err, do, actor())
	}
	return gateway.Identity{Name: who.Name, Token: who.TokenID}, nil
}

// await waits for the decision about a held run, and prints how the run ended.
func (a *app) await(ctx context.Context, r *runner.Runner, held runner.Result, wait time.Duration) error {
	if !a.json {
		printAnswer(a.w.stdout, newInk(a.w), a.outcome(held), answerOptions{config: a.flag, waiting: true})
		fmt.Fprintf(a.w.stdout, "\nwaiting up to %s for the decision\n", wait)
	}
	got, err := r.Await(ctx, held.Run.ID(), wait, a.watch())
	switch {
	case err == nil:
		return a.printResult(got)
	case errors.Is(err, runner.ErrWaiting):
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s is not decided yet, or another process has it; it stays in the ledger\n", held.Run.ID())
		if a.json {
			return a.printResult(held)
		}
		return cli.Exit(cli.ExitPending)
	}
	return a.stopped(got, err)
}

// outcome returns a result in its printed form.
func (a *app) outcome(got runner.Result) present.Outcome {
	return present.NewOutcome(got.Run, got.Outcome, got.Head, a.Loaded.Ledger, filepath.Join(a.Loaded.TracesDir, traces.Name(got.Run.ID())))
}

// printResult prints how a run ended, and returns it as an exit code.
func (a *app) printResult(got runner.Result) error {
	doc := a.outcome(got)
	return a.print(doc, exitCode(got.Outcome), func(out io.Writer, k ink) { printAnswer(out, k, doc, answerOptions{config: a.flag}) })
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

// stopped prints the progress of a run whose record could not be written. The run may have made its call.
func (a *app) stopped(got runner.Result, cause error) error {
	if got.Outcome.Type == "" {
		return cause
	}
	doc := present.NewOutcome(got.Run, got.Outcome, "", a.Loaded.Ledger, "")
	if !a.json {
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s stopped at %s, effect: %s\n", doc.RunID, doc.State, doc.Effect)
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
