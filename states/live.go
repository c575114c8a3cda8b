package states

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/policy"
)

// The ports. Each performs a command and returns an event, never an error: a failure is an
// [EffectFailed].
type (
	// Lister asks every server for its tools, in parallel. A server that cannot answer is a listing
	// that says why.
	Lister interface {
		List(ctx context.Context, wanted *ListTools) Event
	}
	// Completer is a planner or a summarizer.
	Completer interface {
		Complete(ctx context.Context, wanted *Complete) Event
	}
	// Caller makes one tools/call with exactly the command's bytes.
	Caller interface {
		Call(ctx context.Context, wanted *CallTool) Event
	}
	// Historian reads the earlier calls, and counts the run's own call from then on.
	Historian interface {
		ReadHistory(ctx context.Context, wanted *ReadHistory) Event
	}
	// Approver waits for a decision; [ErrParked] means that there is none yet.
	Approver interface {
		Await(ctx context.Context, wanted *AwaitDecision) (Event, error)
	}
)

// A Watcher reports whether the call's server has announced changed tools since they were listed
// for the run.
type Watcher interface {
	Changed() (server string, changed bool)
}

// Live is the [EffectHandler] of a live run. If a port is nil, its effects fail.
type Live struct {
	Watcher   Watcher // may be nil
	Tools     Lister
	Completer Completer
	Caller    Caller
	Approver  Approver
	History   Historian
	Report    Event          // what the client says about a call that it made itself, or that it said nothing in time; nil: not yet
	Active    *policy.Bundle // the operator's bundle now. Without one no approved call is made

	listed bool // the tools are listed, and the call has not been made
}

// Do performs the effect.
func (l *Live) Do(ctx context.Context, wanted Command) (Event, error) {
	if _, waits := wanted.(*AwaitReport); waits {
		if l.Report == nil {
			return nil, ErrParked
		}
		return sanitizeEvent(setHappened(l.Report), false), nil
	}
	call, calling := wanted.(*CallTool)
	if cause := ctx.Err(); cause != nil {
		code, reason := stopCause(cause)
		if calling { // the call has certainly not been sent
			return setHappened(&EffectFailed{Code: code, Effect: NotSent, Reason: reason}), nil
		}
		return setHappened(&Interrupted{Code: code, Reason: reason}), nil
	}

	var ev Event
	switch w := wanted.(type) {
	case nil:
		return l.checkWatcher(), nil
	case *ListTools:
		if w.Judged != nil && l.Active == nil {
			return Interruption(policy.CodeBundleChanged, "The active configuration is unknown."), nil
		}
		l.listed = true
		if l.Tools != nil {
			ev = l.Tools.List(ctx, w)
		}
		if listed, ok := ev.(*ToolsListed); ok && w.Judged != nil {
			ev = l.addActiveBundle(listed, w.Judged)
		}
	case *Complete:
		if l.Completer != nil {
			ev = l.Completer.Complete(ctx, w)
		}
	case *ReadHistory:
		if l.History != nil {
			ev = l.History.ReadHistory(ctx, w)
		}
	case *CallTool:
		l.listed = false
		if l.Caller != nil {
			ev = l.Caller.Call(ctx, call)
		}
	case *AwaitDecision:
		if l.Approver == nil {
			return nil, ErrParked
		}
		var err error
		if ev, err = l.Approver.Await(ctx, w); err != nil {
			return nil, err
		}
	}

	// A missing port, or one that gave no event.
	if ev == nil {
		failed := &EffectFailed{Code: policy.CodeEffectFailed, Effect: NotSent,
			Reason: "This process cannot perform the effect."}
		if calling && l.Caller != nil {
			failed.Effect, failed.Reason = EffectUnknown, "The call may have been sent, and there is no answer."
		}
		ev = failed
	}

	return sanitizeEvent(setHappened(ev), calling), nil
}

// addActiveBundle adds the active bundle to the listing of an approved run, if another bundle
// judged the run.
func (l *Live) addActiveBundle(listed *ToolsListed, judged *policy.Bundle) Event {
	content, digest, err := judged.Active(l.Active)
	switch {
	case err != nil:
		return &EffectFailed{Code: policy.CodeEffectFailed, Effect: NotSent,
			Reason: "The active configuration cannot be written: " + err.Error() + "."}
	case digest == judged.Digest():
		return listed
	}
	return &ToolsListed{Bundle: &ActiveBundle{Content: content, Digest: digest}, Cached: listed.Cached,
		Servers: listed.Servers}
}

// sanitizeEvent replaces values that a replay would refuse. If a port does not report the effect of
// a call, the effect is unknown; a vote with an unknown word denies. The gate judges the times of
// votes.
func sanitizeEvent(ev Event, calling bool) Event {
	effect := NotSent
	if calling {
		effect = EffectUnknown
	}

	switch e := ev.(type) {
	case *EffectFailed:
		if !e.Effect.isKnown() {
			e.Effect = effect
		}
		return e
	case *Decided:
		for i := range e.Votes {
			if v := &e.Votes[i]; v.Outcome != policy.VoteApprove {
				v.Outcome = policy.VoteDeny
			}
		}
		if e.Trace.Check() != nil {
			e.Trace = nil // it decides nothing, so it costs no approval
		}
		return e
	}

	if err := checkEvent(ev); err != nil {
		return setHappened(&EffectFailed{Code: policy.CodeEffectFailed, Effect: effect,
			Reason: "The answer is not valid: " + err.Error() + "."})
	}

	return ev
}

// checkWatcher interrupts a run whose server announced changed tools.
func (l *Live) checkWatcher() Event {
	if !l.listed || l.Watcher == nil {
		return nil
	}
	server, changed := l.Watcher.Changed()
	if !changed {
		return nil
	}
	return Interruption(policy.CodeToolDefinitionChanged,
		fmt.Sprintf("The server %q announced changed tools after they were listed.", server))
}

func stopCause(err error) (policy.Code, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return policy.CodeTimeout, "The run's time ran out."
	}
	return policy.CodeCancelled, "The run was cancelled."
}
