package ledger

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgfsm/deadline"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// ErrGivenUp means that the work on a claimed run was stopped before its call left. Nothing was recorded: what people
// decided stands, and the run can be claimed again.
var ErrGivenUp = errors.New("the work on the run was stopped before anything was called; it can be taken up again")

// ErrChanged means that rows of the ledger are not as they were written.
var ErrChanged = errors.New("the ledger was changed")

// A World is what a run that is taken up again finds.
type World struct {
	// Ports are the run's tools, planner and caller, as they are now. It is asked once.
	Ports func(*states.Run) *states.Live
	// Bundle is what the operator's configuration says now. Without one nothing that people agreed to is called.
	Bundle *policy.Bundle
	// Watch wraps the recorder, for whoever wants to see each new step when it is recorded. It may be nil.
	Watch func(*states.Run, states.Recorder) states.Recorder
}

// Resumed is a run that was taken up again, and how it ended.
type Resumed struct {
	Run     *states.Run
	Outcome states.Outcome
	Head    canonical.Digest // of its trace
}

// Resume goes on with a run that this process has claimed: its record is executed again up to where people were asked,
// what they said is judged, the world is looked at once more, and at most one call is made. The run has as much time as
// a new one. The error is [ErrGivenUp] if ctx was cancelled before the call left, or if the call's server could not be
// asked for its tools. After an error the run is open, and what became of it so far, if it could be told, is returned too.
func (l *Ledger) Resume(ctx context.Context, p *traces.Replayer, run string, w World) (Resumed, error) {
	defer l.letGo(run)
	got, err := l.resume(ctx, p, run, w)
	if errors.Is(err, ErrTooLate) || errors.Is(err, ErrRevoked) {
		// It expired, or somebody was sent away, between the last look and the call. The next look sees that, and the run ends.
		got, err = l.resume(ctx, p, run, w)
	}
	return got, err
}

func (l *Ledger) resume(ctx context.Context, p *traces.Replayer, run string, w World) (Resumed, error) {
	o, err := l.reopen(ctx, p, run)
	if err != nil {
		return Resumed{}, err
	}
	got := Resumed{Run: o.again.Run}
	limit := time.Duration(got.Run.Bundle().Limits().RunTimeout) * time.Millisecond
	within, cancel := deadline.Within(ctx, limit)
	defer cancel()
	live := &states.Live{}
	if w.Ports != nil {
		live = w.Ports(got.Run)
	}
	live.Approver = told{o.decided}
	var keep states.Recorder = o.rec
	if w.Watch != nil {
		keep = w.Watch(got.Run, o.rec)
	}
	door := &guard{l: l, live: live, caller: ctx, o: &o, same: sameBundle(w.Bundle, got.Run.Bundle())}
	if got.Outcome, err = o.again.Advance(within, door, keep); err != nil {
		return got, err
	}
	got.Head, err = o.rec.Finish(ctx, got.Outcome)
	return got, err
}

// Ended is [Ended] on a state of its own.
func (l *Ledger) Ended(ctx context.Context, p *traces.Replayer, run string) (got Resumed, err error) {
	err = l.View(ctx, func(r Reader) error {
		got, err = Ended(ctx, r, p, run)
		return err
	})
	return got, err
}

// Ended returns a run that has ended as it ended, by executing its record again. Nothing is recorded: whoever tells an agent of the
// outcome calls [Ledger.Deliver], too. The error is [ErrUndecided] where the run has not ended.
func Ended(ctx context.Context, r Reader, p *traces.Replayer, run string) (got Resumed, err error) {
	h, steps, q, err := Load(r, run)
	switch {
	case err != nil:
		return got, err
	case q.Ended == "":
		return got, &ClaimError{Request: q, Err: ErrUndecided}
	}
	got.Head = q.Head
	again, err := p.Resume(&h, steps)
	if err != nil {
		return got, err
	}
	got.Run = again.Run
	if got.Outcome, err = again.Advance(ctx, nobody{}, nobody{}); err != nil {
		return got, err
	}
	if head := again.Head(got.Outcome); head != got.Head {
		return got, fmt.Errorf("run %s: %w: its head is %s, the ledger keeps %s", run, ErrChanged, head, got.Head)
	}
	return got, nil
}

// An opened run is one that this process has claimed, and can go on with.
type opened struct {
	request Request
	rec     *Run
	again   *traces.Resumption
	decided *states.Decided // what people said; of a run that was never held nothing
}

// reopen reads the record of a run that this process has claimed, so that it can go on behind it.
func (l *Ledger) reopen(ctx context.Context, p *traces.Replayer, run string) (o opened, err error) {
	err = l.View(ctx, func(r Reader) error {
		h, steps, q, err := Load(r, run)
		if err != nil {
			return err
		}
		if q.Owner != l.owner || q.Ended != "" {
			return &ClaimError{Request: q, Err: ErrTaken}
		}
		if err := unchanged(r, &q, steps); err != nil {
			return fmt.Errorf("run %s: %w; nothing is called, and pgfsm ledger verify says more", run, err)
		}
		again, err := p.Resume(&h, steps)
		if err != nil {
			return err
		}
		o = opened{request: q, rec: l.goOn(&q, h, steps, again.Run), again: again}
		o.decided, err = l.said(r, &q)
		return err
	})
	return o, err
}

// unchanged holds a run's rows to its events, and those to their chain: nobody may have been shown, or have decided about,
// something else than what is about to be called.
func unchanged(r Reader, q *Request, steps []traces.Step) error {
	var again Request
	for e, err := range r.EventsOf(q.RunID) {
		if err != nil {
			return err
		}
		if e.RunPrev != again.Hash || e.Hash != e.digest() {
			return fmt.Errorf("%w: event %d", ErrChanged, e.Seq)
		}
		p, err := readPayload(r, &e)
		if err == nil {
			err = project(&again, &e, p)
		}
		if err != nil {
			return fmt.Errorf("%w: event %d: %w", ErrChanged, e.Seq, err)
		}
	}
	if !slices.Equal(again.Approvers, q.Approvers) {
		return fmt.Errorf("%w: the request's approvers", ErrChanged)
	}
	row := *q
	row.Approvers, again.Approvers = nil, nil // no list and an empty one say the same
	if !reflect.DeepEqual(again, row) {
		return fmt.Errorf("%w: the request is not what its events made of it", ErrChanged)
	}
	if n := len(steps); n != q.Steps || n > 0 && steps[n-1].Hash != q.Head {
		return fmt.Errorf("%w: the events vouch for %d steps, there are %d, or others", ErrChanged, q.Steps, n)
	}
	return nil
}

// shown reports whether what people were shown of a held run is what its record says.
func shown(q *Request, run *states.Run) bool {
	f := run.Facts()
	if f.Held == nil || f.Validated == nil || f.Assessed == nil {
		return false
	}
	args, err := inline(run.Plan().Args, func(Blob) error { return nil })
	b, a := &f.Held.Bound, f.Assessed
	bound := q.RunID == b.Run && q.Actor == b.Actor && q.Server == b.Server && q.Tool == b.Tool && q.Arguments == b.Arguments &&
		q.Definition == b.Definition && q.Bundle == b.Bundle && q.Expires == b.Expires && q.Binding == f.Held.Binding
	judged := q.Env == run.Bundle().Content().Env && q.Mode == a.Mode && q.Score == a.Score && q.Policy == a.Policy &&
		q.Reason == a.Verdict.Reason && q.Quorum == max(a.Quorum, 1) && slices.Equal(q.Approvers, a.Approvers)
	return err == nil && q.Args == args && bound && judged
}

// said is what people said of a held run, as the event that the machine judges: as of the vote that decided, or as of now
// if none did.
func (l *Ledger) said(r Reader, q *Request) (*states.Decided, error) {
	cast, err := ballots(r, q.RunID)
	if err != nil {
		return nil, err
	}
	d := &states.Decided{Binding: q.Binding, Votes: votes(cast)}
	if n := len(cast); n > 0 && cast[n-1].decides {
		d.At = cast[n-1].vote.At
		return d, nil
	}
	end, err := lastLink(r)
	if err != nil {
		return nil, err
	}
	d.At, err = l.now(end.at)
	return d, err
}

// told answers at once what people said.
type told struct{ decided *states.Decided }

func (t told) Await(context.Context, *states.AwaitDecision) (states.Event, error) {
	return t.decided, nil
}

// A guard stands before the door of a run that people decided about. What they agreed to is called in time, under the
// configuration that they agreed under, and while nobody of them or who asked was sent away, or not at all.
type guard struct {
	l      *Ledger
	live   *states.Live
	caller context.Context // of whoever takes the run up, without the run's deadline
	o      *opened
	same   bool // the configuration is still the run's
}

// Do is [states.Door.Do].
func (g *guard) Do(ctx context.Context, wanted states.Command) (states.Event, error) {
	run := g.o.again.Run
	before := run.Outcome().Effect == states.NotSent
	if before && g.caller.Err() != nil {
		return nil, fmt.Errorf("%w (%w)", ErrGivenUp, context.Cause(g.caller))
	}
	if stop, err := g.stop(ctx, run); err != nil || stop != nil {
		return stop, err
	}
	ev, err := g.live.Do(ctx, wanted)
	if before && g.caller.Err() != nil {
		// Whoever was asked may have been cut off: what they said is not judged.
		return nil, fmt.Errorf("%w (%w)", ErrGivenUp, context.Cause(g.caller))
	}
	if held := run.Facts().Held; err == nil && held != nil && run.State() == states.Approved {
		err = away(ev, held.Bound.Server)
	}
	return ev, err
}

// away gives up where the server of an approved call did not answer when the world was looked at again. That it is down
// for a moment must not cost what people agreed to: as long as the approval lasts, the run can be taken up again.
func away(ev states.Event, server string) error {
	switch e := ev.(type) {
	case *states.EffectFailed:
		return fmt.Errorf("%w: the servers could not be asked for their tools: %s", ErrGivenUp, e.Reason)
	case *states.ToolsListed:
		for _, l := range e.Servers {
			if l.Server == server && l.Status != policy.ServerUp {
				return fmt.Errorf("%w: the server %s did not answer: %s", ErrGivenUp, l.Server, l.Reason)
			}
		}
	}
	return nil
}

// stop interrupts a run that was approved and must not be called.
func (g *guard) stop(ctx context.Context, run *states.Run) (states.Event, error) {
	switch run.State() {
	default:
		return nil, nil
	case states.Approved:
		if !shown(&g.o.request, run) {
			return states.Interruption(policy.CodeApprovalMismatch, "What people were asked about is not what would be called."), nil
		}
		if !g.same {
			return states.Interruption(policy.CodeBundleChanged,
				"The configuration is not the one under which the call was held and approved."), nil
		}
	case states.Permitted:
	}
	late, away, err := g.lapsed(ctx, run.Held().Expires)
	switch {
	case err != nil:
		return nil, err
	case late:
		return states.Interruption(policy.CodeApprovalExpired,
			"The request expired at "+run.Held().Expires+", before the call was made."), nil
	case away != "":
		return states.Interruption(policy.CodeApprovalMismatch, away), nil
	}
	return nil, nil
}

// lapsed reports whether the approval has expired, and who was sent away since.
func (g *guard) lapsed(ctx context.Context, expires string) (late bool, away string, err error) {
	err = g.l.View(context.WithoutCancel(ctx), func(r Reader) error {
		end, err := lastLink(r)
		if err != nil {
			return err
		}
		now, err := g.l.now(end.at)
		if err != nil {
			return err
		}
		late = !policy.Before(now, expires)
		away, err = sentAway(r, &g.o.request)
		return err
	})
	return late, away, err
}

// sameBundle reports whether the configuration of now is the one that a run was judged by. Three parts of a bundle are
// not the configuration's alone, but were chosen for the run when it began, by flags and environment, and stay the run's:
// its grants, which only narrow, and which the run is judged by again; its planner, whose plan is there and bound; and
// whether it gets a summary. Unknown means no.
func sameBundle(now, run *policy.Bundle) bool {
	if now == nil {
		return false
	}
	c := *now.Content()
	was := run.Content()
	c.Grants, c.Planner, c.Summary = was.Grants, was.Planner, was.Summary
	text, err := canonical.Marshal(&c)
	return err == nil && canonical.Sum("bundle", text) == run.Digest()
}
