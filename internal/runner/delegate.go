package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/internal/deadline"
	"pgfsm/internal/hook"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// A delegation is a call that its requester makes itself, if pgfsm permits it.
type delegation struct {
	kind         string // states.KindHook or states.KindEvaluation
	from         gateway.Identity
	identity     *policy.Identity
	server, tool string
	arguments    jsontext.Value
	session      *states.Session
}

// delegate takes a call that its requester makes itself through the machine. The answer allows the call only if
// the permit is handed out, on disk. It gives the same answer to the same call again.
func (r *ConfiguredRunner) delegate(ctx context.Context, d *delegation) hook.Answer {
	r.runner.calls.Add(1)
	defer r.runner.calls.Done()
	sent := r.Bundle.ReadSentCall(d.server, d.tool, d.arguments)
	server, tool := d.server, d.tool
	if !r.Bundle.Names(server, tool, d.identity) {
		server, tool = "", ""
	}
	limited, refused := r.limits.Call(d.from, d.identity, server, tool)
	if refused != nil {
		r.runner.noteLimited(ctx, refused, d.from, d.server, d.tool)
		return hook.Answer{Code: string(policy.CodeRateLimited), Reason: r.limitReason(refused)}
	}
	defer limited.End()

	id, err := uuid.NewV7()
	if err != nil {
		return r.answerUnrecorded(ctx, "", err)
	}
	request := states.Request{
		Actor:    d.from.Name,
		At:       r.runner.timestamp(),
		Identity: r.Bundle.Recorded(d.from.Name, d.identity),
		Kind:     d.kind,
		Session:  d.session,
	}
	runCtx, cancel := deadline.Within(ctx, r.runTimeout())
	defer cancel()
	run := states.NewSentRun(id.String(), request, sent, r.Bundle)
	ports := r.serverPorts(run, d.from.Owner())
	defer ports.client.Close()
	limit := &heldCallLimit{
		EffectHandler: &states.Live{Watcher: ports, Tools: ports},
		configured:    r,
		run:           run,
		by:            askerOf(d.from),
	}
	defer limit.endReservation()

	record := r.runner.beginCallRecord(run, limit.by, r.mayAttach(&request, sent.Plan()))
	result, err := r.runner.advanceRecorded(runCtx, run, record, limit, nil)
	var repeats *ledger.AttachError
	if errors.As(err, &repeats) {
		limited.Return()
		return r.answerRepeatedDelegation(ctx, d, sent.Plan(), repeats.Run)
	}
	if result.Outcome.Type == states.TypeBlocked {
		limited.Return()
	}
	if err != nil {
		return r.answerUnrecorded(ctx, run.ID(), err)
	}
	return r.answerDelegation(ctx, d, run.ID(), result.Outcome)
}

// askerOf returns a client that makes calls itself as a caller of the ledger.
func askerOf(client gateway.Identity) ledger.Caller {
	caller := callerOf(client)
	caller.Roles = []string{ledger.RoleHook}
	return caller
}

// answerDelegation answers about a run that has ended or waits.
func (r *ConfiguredRunner) answerDelegation(ctx context.Context, d *delegation, run string, o states.Outcome) hook.Answer {
	r.runner.writeFailed.Store(nil)
	r.runner.measureOutcome(o)
	r.runner.logOutcome(outcomeLevel(o), run, d.from.Name, d.server, d.tool, "", o)
	switch o.Type {
	case states.TypeDelegated:
		return hook.Answer{Allowed: true, Run: run}
	case states.TypePending:
		return r.answerHeldDelegation(run, o.Reason)
	}
	reason := o.Reason
	newer := o.Code == policy.CodeToolUnknown || o.Code == policy.CodeArgumentsInvalid
	if newer && r.Upstreams.ClientTools(d.server) != nil {
		reason += fmt.Sprintf(" If the client is newer than its schemas, give new ones: servers.%s.tools: FILE.json.", d.server)
	}
	return r.answerDenied(run, string(o.Code), reason)
}

// answerHeldDelegation answers about a call that waits for approval.
func (r *ConfiguredRunner) answerHeldDelegation(run, reason string) hook.Answer {
	answer := hook.Answer{
		Code:   string(policy.CodeApprovalRequired),
		Decide: cmp.Or(r.Serve.DecideAt(run), "pgfsm approvals show "+run),
		Reason: fmt.Sprintf("%s The call waits for approval as run %s.", reason, run),
		Run:    run,
	}
	if r.hidesReasons() {
		answer.Decide, answer.Reason = "", "A person has to decide about this call. Make the identical call again after the decision."
	}
	return answer
}

// answerDenied answers about a call that must not be made.
func (r *ConfiguredRunner) answerDenied(run, code, reason string) hook.Answer {
	if r.hidesReasons() {
		code, reason = opaqueCode, opaqueReason
	}
	return hook.Answer{Code: code, Reason: reason, Run: run}
}

// answerUnrecorded answers about a call whose run cannot be recorded. The call must not be made.
func (r *ConfiguredRunner) answerUnrecorded(ctx context.Context, run string, cause error) hook.Answer {
	r.runner.noteWriteFailure(ctx, cause)
	reason := cause.Error()
	if r.hidesReasons() {
		reason = opaqueRecordReason
	}
	return hook.Answer{Code: string(policy.CodeRecordFailed), Reason: reason, Run: run}
}

// answerRepeatedDelegation answers about a call that was asked about before: by the same id of the client's call,
// or, if it was held, by the same arguments in the same session.
func (r *ConfiguredRunner) answerRepeatedDelegation(ctx context.Context, d *delegation, plan *policy.Plan, run string) hook.Answer {
	q, err := r.runner.readRequest(ctx, run)
	if err != nil {
		return r.answerUnrecorded(ctx, run, err)
	}
	call := d.session.CallID()
	sameID := call != "" && q.ClientCall == call
	switch {
	case sameID && (plan == nil || q.Server != d.server || q.Tool != d.tool || q.Arguments != "" && q.Arguments != plan.ArgsDigest()):
		return r.answerDenied(run, string(policy.CodeCallReused), "The client's id of this call belongs to a call with other arguments.")
	case q.Sent != "" && sameID && q.Ended == "":
		return hook.Answer{Allowed: true, Run: run}
	case q.Sent != "" && sameID: // who asks again after the end would make another call with one permit
		return r.answerDenied(run, string(policy.CodeCallReused), "The client's id of this call belongs to a call that has ended.")
	case q.Status == ledger.Pending && q.Ended == "":
		return r.answerHeldDelegation(run, q.Reason)
	case q.Status == ledger.Approved && q.Ended == "":
		return r.resumeDelegation(ctx, d, run)
	case q.Ended == "":
		return hook.Answer{Code: string(policy.CodeInterrupted), Run: run, Reason: "The call is being judged. Make it again in a moment."}
	case sameID:
		return r.answerDenied(run, q.Code, q.Reason)
	}
	// The outcome of a held call is told once; after that the same call is a new one.
	first, err := r.runner.options.Ledger.Deliver(ctx, run, ledger.ByRepeat)
	switch {
	case err != nil:
		return r.answerUnrecorded(ctx, run, err)
	case first:
		return r.answerDenied(run, q.Code, q.Reason)
	}
	return r.delegate(ctx, d)
}

// resumeDelegation hands the permit of an approved call out, once.
func (r *ConfiguredRunner) resumeDelegation(ctx context.Context, d *delegation, run string) hook.Answer {
	l := r.runner.options.Ledger
	err := l.ClaimAsked(ctx, run)
	if err == nil {
		var result Result
		var ends []func()
		result, err = l.Resume(ctx, r.runner.replayer, run, ledger.ResumeOptions{
			Ports: func(resumed *states.Run) *states.Live {
				handler, end := r.runPorts(resumed, false)
				ends = append(ends, end)
				return handler
			},
			Bundle: r.Bundle,
			Call:   d.session.CallID(),
		})
		for _, end := range ends {
			end()
		}
		if err == nil {
			return r.answerDelegation(ctx, d, run, result.Outcome)
		}
	}
	if errors.Is(err, ledger.ErrTaken) || errors.Is(err, ledger.ErrEnded) || errors.Is(err, ledger.ErrStarted) {
		return hook.Answer{Code: string(policy.CodeInterrupted), Run: run, Reason: "Another request uses the approval of this call."}
	}
	return r.answerUnrecorded(ctx, run, err)
}

// report records what a client says about a call that it made itself. A call that pgfsm does not know is nothing.
func (r *ConfiguredRunner) report(ctx context.Context, from gateway.Identity, session *states.Session, server, tool string,
	arguments, result jsontext.Value, failed bool) error {
	event := &states.CallReported{Arguments: digestOf("arguments", arguments), Bytes: len(result), Failed: failed, Result: digestOf("result", result)}
	run, permitted, err := r.findDelegated(ctx, from, session, server, tool, event.Arguments)
	if err != nil || run == "" {
		return err
	}
	if event.Arguments != "" && event.Arguments != permitted {
		event.Ran, _ = canonical.JSON(arguments) // strict, because it has a digest
	}
	ended, err := r.runner.options.Ledger.Report(ctx, r.runner.replayer, run, askerOf(from), event)
	switch {
	case errors.Is(err, ledger.ErrNotDelegated), errors.Is(err, ledger.ErrTaken): // another report came first
		return nil
	case err != nil:
		return err
	}
	if ended.Run == nil { // it was late
		return nil
	}
	o := ended.Outcome
	r.runner.metrics.Reported(cmp.Or(string(o.Code), o.Type))
	r.runner.logOutcome(outcomeLevel(o), run, from.Name, server, tool, "", o)
	return nil
}

// digestOf returns the digest of a JSON value in canonical form; empty without a value, or if it is not strict JSON.
func digestOf(kind string, value jsontext.Value) canonical.Digest {
	if len(value) == 0 {
		return ""
	}
	form, err := canonical.JSON(value)
	if err != nil {
		return ""
	}
	return canonical.Sum(kind, form)
}

// findDelegated returns the run of a reported call: by the client's id of the call or, if it has none, the oldest
// one of the session without a report whose arguments are the same, else whose tool is. It is empty if there is none.
// permitted is the digest of the arguments of the permitted call.
func (r *ConfiguredRunner) findDelegated(ctx context.Context, from gateway.Identity, session *states.Session, server, tool string,
	arguments canonical.Digest) (run string, permitted canonical.Digest, err error) {
	f := ledger.Filter{Actor: from.Name, Session: session.Key(), ClientCall: session.CallID()}
	if f.ClientCall == "" {
		f.Statuses, f.Open, f.Server, f.Tool = []ledger.Status{ledger.Delegated}, true, server, tool
	}
	err = r.runner.options.Ledger.View(ctx, func(look ledger.Reader) error {
		run, permitted = "", ""
		for q, err := range look.Runs(f) {
			if err != nil {
				return err
			}
			if q.Delegates() && (run == "" || permitted != arguments && q.Arguments == arguments) {
				run, permitted = q.RunID, q.Arguments
			}
		}
		return nil
	})
	return run, permitted, err
}
