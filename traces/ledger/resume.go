package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/deadline"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// ErrGivenUp means that the work on a claimed run was stopped before its call was sent. Nothing was
// recorded: the decision stays, and the run can be claimed again.
var ErrGivenUp = errors.New("the work on the run was stopped before anything was called; it can be taken up again")

// ErrChanged means that rows of the ledger were changed.
var ErrChanged = errors.New("the ledger was changed")

// ResumeOptions holds what a resumed run needs from its process.
type ResumeOptions struct {
	// Ports returns the run's tools, planner and caller. It is called once.
	Ports func(*states.Run) *states.Live
	// Bundle is the current bundle of the operator's configuration. Without it, no approved call is
	// made.
	Bundle *policy.Bundle
	// Trace generates the trace context of the approved call. If it is nil, the call has none.
	Trace func() *states.TraceContext
	// Call is the client's id of the call that asked again, for a run whose client makes the call itself.
	Call string
	// Watch wraps the recorder, to observe each new step when the step is recorded. It may be nil.
	Watch func(*states.Run, states.Recorder) states.Recorder
}

// Resumed is a run that was resumed, and its outcome.
type Resumed struct {
	Run     *states.Run
	Outcome states.Outcome
	Head    canonical.Digest // the head of the trace
}

// Resume continues a run that this process has claimed. It executes the record again up to the
// hold, judges the votes, lists the tools once more, judges the call by the current bundle, and
// makes at most one call. A run that this build judges differently from what approvers saw ends as
// build_changed. The run has as much time as a new one. The error is [ErrGivenUp] if ctx was
// cancelled before the call was sent, or if the call's server did not list its tools. After an
// error the run is open, and Resume also returns its state if that is known.
func (l *Ledger) Resume(ctx context.Context, p *traces.Replayer, run string, options ResumeOptions) (Resumed, error) {
	defer l.endWork(run)
	resumed, err := l.resumeClaimed(ctx, p, run, options)
	if errors.Is(err, ErrTooLate) || errors.Is(err, ErrRevoked) || errors.Is(err, ErrCredentials) {
		// The approval expired, or a token was revoked, or a connection ended, between the last check and the call. The
		// next attempt sees that and ends the run.
		resumed, err = l.resumeClaimed(ctx, p, run, options)
	}
	return resumed, err
}

func (l *Ledger) resumeClaimed(ctx context.Context, p *traces.Replayer, run string,
	options ResumeOptions) (Resumed, error) {
	opened, err := l.reopenRun(ctx, p, run)
	switch {
	case err != nil:
		return Resumed{}, err
	case opened.changed != nil:
		return opened.endChanged(ctx, p)
	}

	resumed := Resumed{Run: opened.resumption.Run}
	limit := time.Duration(resumed.Run.Bundle().Limits().RunTimeout) * time.Millisecond
	runCtx, cancel := deadline.Within(ctx, limit)
	defer cancel()

	// The run continues with the ports of this process, the recorded votes and the active bundle.
	live := &states.Live{}
	if options.Ports != nil {
		live = options.Ports(resumed.Run)
	}

	if options.Trace != nil {
		opened.decision.Trace = options.Trace()
	}

	opened.decision.Call = options.Call
	if s := resumed.Run.Request().Session; s != nil && options.Bundle != nil && options.Bundle.ReadsSession() {
		session, err := l.ReadSession(ctx, resumed.Run.Request().Actor, s.Key(), true)
		if err != nil {
			return resumed, err
		}
		opened.decision.Rewritten = session.Rewritten
	}
	live.Approver, live.Active = recordedApprover{opened.decision}, options.Bundle
	var recorder states.Recorder = opened.recorder
	if options.Watch != nil {
		recorder = options.Watch(resumed.Run, opened.recorder)
	}

	handler := &guard{ledger: l, live: live, caller: ctx, opened: &opened}
	if resumed.Outcome, err = opened.resumption.Advance(runCtx, handler, recorder); err != nil {
		return resumed, err
	}

	if resumed.Outcome.Waits() { // the permit was handed out
		resumed.Head = opened.recorder.Head(resumed.Outcome)
		return resumed, nil
	}
	resumed.Head, err = opened.recorder.Finish(ctx, resumed.Outcome)
	return resumed, err
}

// Ended calls [Ended] in its own transaction.
func (l *Ledger) Ended(ctx context.Context, p *traces.Replayer, run string) (resumed Resumed, err error) {
	err = l.View(ctx, func(r Reader) error {
		resumed, err = Ended(ctx, r, p, run)
		return err
	})
	return resumed, err
}

// Ended returns an ended run with its outcome, by executing the record again. It records nothing: a
// caller that tells an agent the outcome also calls [Ledger.Deliver]. The error is [ErrUndecided]
// if the run has not ended.
func Ended(ctx context.Context, r Reader, p *traces.Replayer, run string) (resumed Resumed, err error) {
	rec, err := Load(r, run)
	switch {
	case err != nil:
		return resumed, err
	case rec.Row.Ended == "":
		return resumed, &ClaimError{Row: rec.Row, Err: ErrUndecided}
	}

	resumed.Head = rec.Row.Head
	if rec.ended != nil && rec.ended.Code == policy.CodeBuildChanged && rec.Row.Sent == "" {
		resumed.Run, resumed.Outcome = states.NewHeld(run, rec.Header.Request, rec.Row.Binding), *rec.ended
		return resumed, nil
	}
	resumption, outcome, err := rec.deriveTrace(ctx, p)
	if err != nil {
		return resumed, fmt.Errorf("run %s: %w", run, err)
	}
	resumed.Run, resumed.Outcome = resumption.Run, outcome
	return resumed, nil
}

// An openedRun is one that this process has claimed and can continue.
type openedRun struct {
	row        RunRow
	recorder   *RunRecorder
	resumption *traces.Resumption // nil if changed is set
	reworded   bool               // this build words reasons differently from the build that began the run
	changed    error              // how this build judges a held run differently from what approvers saw
	decision   *states.Decided    // the votes; none if the run was never held
}

// reopenRun reads the record of a run that this process has claimed.
func (l *Ledger) reopenRun(ctx context.Context, p *traces.Replayer, run string) (o openedRun, err error) {
	err = l.View(ctx, func(r Reader) error {
		rec, err := Load(r, run)
		if err != nil {
			return err
		}
		q := &rec.Row
		if q.Owner != l.owner || q.Ended != "" {
			return &ClaimError{Row: *q, Err: ErrTaken}
		}
		if err := errors.Join(checkUnchanged(r, q), checkIdentities(ctx, r)); err != nil {
			return fmt.Errorf("run %s: %w; nothing is called, and pgfsm ledger verify says more", run, err)
		}

		o = openedRun{row: *q}
		if q.Binding == "" || q.Sent != "" {
			o.resumption, err = rec.reexecute(p)
		} else if o.resumption, o.reworded, err = rec.rejudgeHeld(p, l.build); err != nil && !errors.Is(err, ErrChanged) {
			o.changed, o.recorder = err, l.continueRecord(rec, states.NewHeld(run, rec.Header.Request, q.Binding), nil)
			return nil
		}

		if err != nil {
			return err
		}

		o.recorder = l.continueRecord(rec, o.resumption.Run, o.resumption)
		o.decision, err = l.recordedDecision(r, q)

		return err
	})
	return o, err
}

// checkUnchanged compares a run's rows with its entries, and the entries with the tree. The call
// that is about to be made must be the one that approvers saw and decided about.
func checkUnchanged(r Reader, q *RunRow) error {
	var projected RunRow
	prev, known := "", make(generations)

	for e, err := range r.EntriesOf(q.RunID) {
		if err != nil {
			return err
		}
		hash, err := leafHash(r, e.Index)
		if err != nil {
			return err
		}
		if e.computeHash() != hash || e.Prev != prev || e.N != projected.Entries {
			return fmt.Errorf("%w: entry %d", ErrChanged, e.Index)
		}
		if err := projected.applyEntry(r, &e, known); err != nil {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		prev = encodeLink(hash)
	}

	if differingColumn(projected, *q) != "" {
		return fmt.Errorf("%w: the request is not what its entries made of it", ErrChanged)
	}

	return nil
}

// checkIdentities compares the tokens and the blocks with their entries. A changed row could
// hide that a token was revoked or a subject blocked.
func checkIdentities(ctx context.Context, r Reader) error {
	err := verifyIdentities(ctx, r)
	if errors.Is(err, ErrTampered) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// matchesRecord reports whether the row that approvers saw of a held run equals its record. If this
// build words reasons differently, it cannot compare the reason.
func matchesRecord(q *RunRow, run *states.Run, reworded bool) bool {
	f := run.Facts()
	if f.Held == nil || f.Validated == nil || f.Assessed == nil {
		return false
	}
	b, a := &f.Held.Bound, f.Assessed
	boundMatches := q.RunID == b.Run && q.Actor == b.Actor && q.Server == b.Server && q.Tool == b.Tool &&
		q.Arguments == b.Arguments &&
		q.Definition == b.Definition && q.Bundle == run.Bundle().Digest() &&
		(q.Expires == b.Expires || q.UsesApproval()) && q.Binding == f.Held.Binding
	judgmentMatches := q.Env == run.Bundle().Content().Env && q.Mode == a.Mode && q.Score == a.Score &&
		q.Policy == a.Policy && (reworded || q.Reason == a.Verdict.Reason) && q.Quorum == max(a.Quorum, 1) &&
		slices.Equal(q.Approvers, a.Approvers)
	return q.Args == (&plannedCall{Args: run.Plan().Args.Bytes()}).argsColumn() && boundMatches && judgmentMatches
}

// recordedDecision returns the votes about a held run as the event that the machine judges. The
// event has the time of the vote that decided, or the current time if no vote did.
func (l *Ledger) recordedDecision(r Reader, q *RunRow) (*states.Decided, error) {
	cast, err := readVotes(r, q.RunID)
	if err != nil {
		return nil, err
	}
	d := &states.Decided{Binding: q.Binding, Votes: votesOf(cast)}
	if n := len(cast); n > 0 && cast[n-1].decides {
		d.At = cast[n-1].vote.At
		return d, nil
	}
	d.At, err = l.readTime(r)
	return d, err
}

// recordedApprover is an approver whose decision is recorded.
type recordedApprover struct{ decided *states.Decided }

func (t recordedApprover) Await(context.Context, *states.AwaitDecision) (states.Event, error) {
	return t.decided, nil
}

// A guard is the handler of an approved run. It makes the call only before the approval expires,
// and only if no token of the requester or of an approver was revoked. The machine judges whether
// the current bundle permits it.
type guard struct {
	ledger *Ledger
	live   *states.Live
	caller context.Context // the context of Resume's caller, without the run's deadline
	opened *openedRun
}

// Do is [states.EffectHandler.Do].
func (g *guard) Do(ctx context.Context, command states.Command) (states.Event, error) {
	run := g.opened.resumption.Run
	notSent := run.Outcome().Effect == states.NotSent
	if notSent && g.caller.Err() != nil {
		return nil, fmt.Errorf("%w (%w)", ErrGivenUp, context.Cause(g.caller))
	}
	if stop, err := g.interruption(ctx, run); err != nil || stop != nil {
		return stop, err
	}
	ev, err := g.live.Do(ctx, command)
	if notSent && g.caller.Err() != nil {
		// The effect may have been interrupted, so its event is not judged.
		return nil, fmt.Errorf("%w (%w)", ErrGivenUp, context.Cause(g.caller))
	}
	if err != nil {
		return ev, err
	}
	if heldFact := run.Facts().Held; heldFact != nil && run.State() == states.Approved {
		return ev, checkListed(ev, heldFact.Bound.Server)
	}
	return ev, nil
}

// checkListed gives the run up if the server of an approved call did not list its tools. A short
// outage of a server must not cost the approval: as long as the approval is valid, the run can be
// resumed.
func checkListed(ev states.Event, server string) error {
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

// interruption returns the event that interrupts an approved run whose call must not be made; nil if
// the call may be made.
func (g *guard) interruption(ctx context.Context, run *states.Run) (states.Event, error) {
	switch run.State() {
	case states.Approved:
		if !matchesRecord(&g.opened.row, run, g.opened.reworded) {
			return states.Interruption(policy.CodeApprovalMismatch, "The call differs from the approved one."), nil
		}
	case states.Permitted:
	default:
		return nil, nil
	}

	expires := g.opened.row.Expires
	expired, revoked, unconnected, err := g.checkLapsed(ctx, run)
	switch {
	case err != nil:
		return nil, err
	case expired:
		return states.Interruption(policy.CodeApprovalExpired,
			"The request expired at "+expires+", before the call was made."), nil
	case revoked != "":
		return states.Interruption(policy.CodeApprovalMismatch, revoked), nil
	case unconnected != "":
		return states.Interruption(policy.CodeCredentialsChanged, unconnected), nil
	}
	return nil, nil
}

// checkLapsed reports whether the approval has expired. It returns the reason if an identity was revoked since, or
// if the connection of the call is not the requester's any more.
func (g *guard) checkLapsed(ctx context.Context, run *states.Run) (expired bool, revoked, unconnected string, err error) {
	request := run.Request()
	err = g.ledger.View(context.WithoutCancel(ctx), func(r Reader) error {
		now, err := g.ledger.readTime(r)
		if err != nil {
			return err
		}
		expired = !policy.IsBefore(now, g.opened.row.Expires)
		if revoked, err = revocationReason(r, &g.opened.row); err != nil {
			return err
		}
		_, unconnected, err = accountEnded(r, &request, g.opened.row.Server)
		return err
	})
	return expired, revoked, unconnected, err
}
