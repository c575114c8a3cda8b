package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"pgfsm/deadline"
	"pgfsm/policy"
	"pgfsm/policy/visible"
	"pgfsm/states"
	"pgfsm/traces"
)

// now is the form of every time that is recorded.
func now() string { return time.Now().UTC().Format(policy.TimeForm) }

// execute takes one request through the machine, records it and prints what came of it.
func (a *app) execute(ctx context.Context, kind string, text []byte, o *runOptions) error {
	if a.loaded.Ledger != "" {
		return a.executeLedgered(ctx, kind, text, o)
	}
	if o.wait > 0 {
		return errors.New("--wait needs a ledger, in which people can decide: name one in the configuration, as in ledger: \"sqlite:pgfsm.db\"")
	}
	ctx, cancel := deadline.Within(ctx, time.Duration(a.bundle.Limits().RunTimeout)*time.Millisecond)
	defer cancel()
	task, err := a.take(ctx, o.task)
	if err != nil {
		return err
	}
	defer a.release(task)
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	request := states.Request{Actor: actor(), At: now(), Kind: kind, Text: text}
	if task != nil {
		request.Task = task.Task()
	}
	run := states.NewRun(id.String(), request, a.bundle)
	rec, err := traces.Create(a.tracesDir, traces.NewHeader(a.machine, run), now)
	if err != nil {
		return err
	}
	a.recoverRuns()
	return a.record(ctx, run, rec, task, o.json)
}

// record takes the run through the machine.
func (a *app) record(ctx context.Context, run *states.Run, rec *traces.Recorder, task *traces.TaskFile, asJSON bool) error {
	var keep states.Recorder = rec
	if task != nil {
		keep = task.Recorder(run, rec)
	}
	k := newInk(a.w)
	if !asJSON {
		keep = &stagePrinter{Recorder: keep, out: a.w.stdout, ink: k, run: run}
	}
	outcome, err := a.machine.Advance(ctx, run, a.door(run), keep)
	if err != nil {
		return a.unrecorded(run, errors.Join(err, rec.Abandon()), asJSON)
	}
	path, head, err := rec.Finish(outcome)
	if err != nil {
		return a.unrecorded(run, fmt.Errorf("the trace cannot be finished: %w", errors.Join(err, rec.Abandon())), asJSON)
	}
	return a.print(k, newDocument(run, outcome, kept{trace: path}, head), outcome, asJSON)
}

func (a *app) printAnswer(k ink, doc document) {
	printAnswer(a.w.stdout, k, doc, situation{config: a.flag})
}

// print shows what came of a run, and says it as an exit code.
func (a *app) print(k ink, doc document, o states.Outcome, asJSON bool) error {
	if asJSON {
		if err := printJSON(a.w.stdout, doc); err != nil {
			return err
		}
	} else {
		a.printAnswer(k, doc)
	}
	return exit(exitCode(o))
}

// take makes the run one of a task, if one is named, and waits for the task's other runs.
func (a *app) take(ctx context.Context, id string) (*traces.TaskFile, error) {
	if id == "" {
		return nil, nil
	}
	return traces.OpenTask(ctx, a.tracesDir, id, func() {
		fmt.Fprintf(a.w.stderr, "pgfsm: another run of the task %s is under way; waiting for it\n", visible.Text(id))
	})
}

func (a *app) release(task *traces.TaskFile) {
	if task == nil {
		return
	}
	if err := task.Close(); err != nil {
		fmt.Fprintf(a.w.stderr, "pgfsm: warning: the task is not let go: %s\n", visible.Text(err.Error()))
	}
}

// unrecorded says how a run stands whose record cannot be kept. Nothing more is done, but a call may have been made, and
// whoever asked must not have to guess.
func (a *app) unrecorded(run *states.Run, cause error, asJSON bool) error {
	o := run.Outcome()
	o.Type, o.Code, o.Gate, o.Reason = states.TypeFailed, policy.CodeRecordFailed, policy.GateRun, cause.Error()
	doc := newDocument(run, o, kept{ledger: a.loaded.Ledger}, "")
	if !asJSON {
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s stopped at %s, effect: %s\n", doc.RunID, doc.State, doc.Effect)
		return cause
	}
	if err := printJSON(a.w.stdout, doc); err != nil {
		return errors.Join(cause, err)
	}
	return exit(exitCould)
}

// recoverRuns ends what processes that are gone left behind.
func (a *app) recoverRuns() {
	ended, err := traces.NewReplayer(a.machine, nil).Recover(a.tracesDir, now)
	if err != nil {
		fmt.Fprintf(a.w.stderr, "pgfsm: left-over runs in %s cannot be looked at: %s\n",
			visible.Text(a.tracesDir), visible.Text(err.Error()))
	}
	for _, r := range ended {
		if r.Err != nil {
			fmt.Fprintf(a.w.stderr, "pgfsm: %s was left over and cannot be ended: %s\n",
				visible.Text(r.Partial), visible.Text(r.Err.Error()))
			continue
		}
		fmt.Fprintf(a.w.stderr, "pgfsm: a left-over run ended as %s: %s\n",
			visible.Text(strings.TrimSpace(r.Outcome.State+" "+string(r.Outcome.Code))), visible.Text(r.Trace))
	}
}
