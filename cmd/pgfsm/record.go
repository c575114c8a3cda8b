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
	"pgfsm/traces/ledger"
)

// withLedger opens the configuration's ledger, ends what processes that are gone left in it, does something with it, and
// closes it.
func (a *app) withLedger(ctx context.Context, do func(*openedLedger) error) error {
	l, err := openLedger(a.w, "", sqlitePrefix+a.loaded.Ledger, toWrite)
	if err != nil {
		return err
	}
	a.recoverLedger(ctx, l)
	return closing(a.w, l, do(l))
}

// executeLedgered is execute where the configuration names a ledger.
func (a *app) executeLedgered(ctx context.Context, kind string, text []byte, o *runOptions) error {
	return a.withLedger(ctx, func(l *openedLedger) error {
		limit := time.Duration(a.bundle.Limits().RunTimeout) * time.Millisecond
		within, cancel := deadline.Within(ctx, limit)
		defer cancel()
		request, err := a.request(within, l, kind, text, o.task)
		if err != nil {
			return err
		}
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		return a.recordLedgered(ctx, within, l, states.NewRun(id.String(), request, a.bundle), o)
	})
}

// request is what is asked, by whom and when.
func (a *app) request(ctx context.Context, l *openedLedger, kind string, text []byte, task string) (r states.Request, err error) {
	r = states.Request{At: now(), Kind: kind, Text: text}
	if r.Actor, err = a.asks(ctx, l); err != nil {
		return r, err
	}
	if task != "" {
		r.Task = ledger.Task(task)
	}
	return r, err
}

// asks is who asks: whom the token stands for, or else the user of the operating system.
func (a *app) asks(ctx context.Context, l *openedLedger) (string, error) {
	if a.w.env(tokenVariable) == "" {
		return actor(), nil
	}
	who, err := caller(ctx, a.w, l, ledger.ActCall)
	if err != nil {
		return "", fmt.Errorf("%s: %w; unset it to ask as %s", tokenVariable, err, actor())
	}
	return who.Name, nil
}

// recordLedgered takes a new run through the machine, within its time. A held one may be waited for, which is not a part of
// its time.
func (a *app) recordLedgered(ctx, within context.Context, l *openedLedger, run *states.Run, o *runOptions) error {
	rec := l.Begin(traces.NewHeader(a.machine, run), run)
	k := newInk(a.w)
	outcome, err := a.machine.Advance(within, run, rec.Door(a.door(run)), a.watched(run, rec, k, o.json))
	if err != nil {
		rec.Abandon()
		return a.unrecorded(run, err, o.json)
	}
	where := kept{ledger: l.path}
	if outcome.Type == states.TypePending {
		doc := newDocument(run, outcome, where, rec.Head(outcome))
		if o.wait > 0 {
			return a.await(ctx, l, doc, outcome, k, o)
		}
		return a.print(k, doc, outcome, o.json)
	}
	head, err := rec.Finish(outcome)
	if err != nil {
		rec.Abandon()
		return a.unrecorded(run, err, o.json)
	}
	return a.print(k, newDocument(run, outcome, where, head), outcome, o.json)
}

// watched shows each step to people as soon as it is recorded.
func (a *app) watched(run *states.Run, rec states.Recorder, k ink, asJSON bool) states.Recorder {
	if asJSON {
		return rec
	}
	return &stagePrinter{Recorder: rec, out: a.w.stdout, ink: k, run: run}
}

// await waits for people to decide about a held run, and goes on with it then, or says how it ended if another process was
// faster. What it waits for in vain stays pending.
func (a *app) await(ctx context.Context, l *openedLedger, doc document, held states.Outcome, k ink, o *runOptions) error {
	if !o.json {
		printAnswer(a.w.stdout, k, doc, situation{config: a.flag, awaited: true})
		fmt.Fprintf(a.w.stdout, "\nwaiting up to %s for the decision\n", o.wait)
	}
	within, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	var got ledger.Resumed
	_, err := ledger.Wait(within, l, doc.RunID, time.Now)
	if err == nil {
		err = ledger.Poll(within, ledger.PollInterval, func() (bool, error) {
			var err error
			got, err = a.goOn(ctx, l, doc.RunID, k, o.json)
			if errors.Is(err, ledger.ErrTaken) { // whoever has it may end it, or be gone
				return false, nil
			}
			return true, err
		})
	}
	switch {
	case err == nil:
		return a.print(k, newDocument(got.Run, got.Outcome, kept{ledger: l.path}, got.Head), got.Outcome, o.json)
	case within.Err() != nil && got.Run == nil:
		fmt.Fprintf(a.w.stderr, "pgfsm: the run %s is not decided yet, or another process has it; it stays in the ledger\n", doc.RunID)
		if o.json {
			return a.print(k, doc, held, true)
		}
		return exit(exitPending)
	}
	return a.stopped(got, err, o.json)
}

// goOn takes up a run that is decided and returns how it ended, whoever ended it.
func (a *app) goOn(ctx context.Context, l *openedLedger, id string, k ink, asJSON bool) (ledger.Resumed, error) {
	p := traces.NewReplayer(a.machine, nil)
	switch err := l.Claim(ctx, id); {
	case errors.Is(err, ledger.ErrEnded):
		return l.Ended(ctx, p, id)
	case err != nil:
		return ledger.Resumed{}, err
	}
	return l.Resume(ctx, p, id, a.resumption(k, asJSON))
}

// resumption is the world as a run finds it that is taken up again.
func (a *app) resumption(k ink, asJSON bool) ledger.World {
	return ledger.World{
		Ports: a.door, Bundle: a.bundle,
		Watch: func(run *states.Run, rec states.Recorder) states.Recorder { return a.watched(run, rec, k, asJSON) },
	}
}

// stopped says how a run stands that was taken up and did not come to its end.
func (a *app) stopped(got ledger.Resumed, err error, asJSON bool) error {
	var claim *ledger.ClaimError
	if got.Run == nil || errors.Is(err, ledger.ErrGivenUp) || errors.As(err, &claim) {
		return err
	}
	return a.unrecorded(got.Run, err, asJSON)
}

// recoverLedger ends what processes that are gone left in the ledger, and what people or the clock have ended.
func (a *app) recoverLedger(ctx context.Context, l *openedLedger) {
	ended, err := l.Recover(ctx, traces.NewReplayer(a.machine, nil))
	if err != nil {
		fmt.Fprintf(a.w.stderr, "pgfsm: left-over runs in %s cannot be looked at: %s\n",
			visible.Text(l.path), visible.Text(err.Error()))
	}
	for _, r := range ended {
		if r.Err != nil {
			fmt.Fprintf(a.w.stderr, "pgfsm: the run %s was left over and cannot be ended: %s\n", r.RunID, visible.Text(r.Err.Error()))
			continue
		}
		if r.Outcome.Code == policy.CodeApprovalDenied || r.Outcome.Code == policy.CodeApprovalExpired {
			continue // nobody left it: it was over, and whoever asks for it is told
		}
		fmt.Fprintf(a.w.stderr, "pgfsm: a left-over run ended as %s: %s\n",
			visible.Text(strings.TrimSpace(r.Outcome.State+" "+string(r.Outcome.Code))), r.RunID)
	}
}
