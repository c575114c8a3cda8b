package ledger

import (
	"errors"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// An AttachError means that nothing was recorded, because the call repeats a held one whose outcome
// was not delivered yet.
type AttachError struct{ Run string }

func (e *AttachError) Error() string {
	return "the call repeats that of run " + e.Run + ", which was held"
}

// BeginCall is Begin for an agent's call. The first commit of the run checks once more that the
// requester has a valid token for calls: the gateway may have authenticated the requester from its
// memory, and any process may have revoked the token since. If attaches is true, and the call repeats
// one to which a repetition attaches (see [Ledger.Attach]), that commit records nothing either, and
// fails with an [*AttachError].
func (l *Ledger) BeginCall(h traces.Header, run *states.Run, requester Caller, attaches bool) *RunRecorder {
	r := l.Begin(h, run)
	r.requester, r.attaches = requester, attaches
	return r
}

// readAhead does the reads with which every commit of the run begins.
func (r *RunRecorder) readAhead(look Reader) {
	if r.row.RunID != "" {
		_, _ = look.LastIndexOf(r.header.RunID)
		_, _ = leafHash(look, r.row.Entry)
		return
	}
	if r.requester.TokenID != "" {
		_, _ = look.Token(r.requester.TokenID)
	}
	if call, ok := r.repeatedCall(); ok && !states.Delegates(r.header.Request.Kind) {
		_, _ = look.FindWaiting(call)
	}
	_ = r.checkRequester(look)
}

// checkFirst checks a run before its first commit: the requester's credentials and whether the call
// repeats a held one. It writes nothing.
func (r *RunRecorder) checkFirst(b *batch) error {
	if r.requester.TokenID != "" {
		if err := r.requester.recheckCalls(b, actionOf(r.header.Request.Kind)); err != nil {
			r.ledger.recent.forget(r.requester.TokenID)
			return err
		}
	}
	if err := r.checkRequester(b); err != nil {
		return err
	}

	if states.Delegates(r.header.Request.Kind) {
		run, err := r.findDelegation(b)
		if err == nil && run != "" {
			err = &AttachError{Run: run}
		}
		return err
	}
	call, ok := r.repeatedCall()
	if !ok {
		return nil
	}
	switch run, err := b.FindWaiting(call); {
	case err == nil:
		return &AttachError{Run: run}
	case errors.Is(err, ErrNotFound):
		return nil
	default:
		return err
	}
}

// repeatedCall returns the call with which a held one is looked up; ok is false if no call can be
// equal to it.
func (r *RunRecorder) repeatedCall() (call RepeatedCall, ok bool) {
	if !r.attaches {
		return call, false
	}
	plan := r.run.Plan()
	if plan == nil { // the run ended before its plan was judged, for example because no server answered
		var verdict policy.Verdict
		plan, verdict = policy.ReadCall(r.header.Request.Text, r.run.Bundle().Limits())
		if !verdict.Allows() {
			return call, false
		}
	}
	return RepeatedCall{
		Actor:      r.requester.Name,
		OnBehalfOf: r.requester.OnBehalfOf(),
		Client:     r.requester.Client(),
		Server:     plan.Server,
		Tool:       plan.Tool,
		Arguments:  plan.ArgsDigest(),
	}, true
}
