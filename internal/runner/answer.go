package runner

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// answerCall answers a call whose run has ended or is held. rpc is the server's error, if the
// server answered the call with one. An error means that the run could not be recorded.
func (r *ConfiguredRunner) answerCall(ctx context.Context, call *gateway.ToolCall, run *states.Run,
	rpc *upstream.RPCError, result Result, err error) gateway.Answer {
	if err != nil {
		r.runner.noteWriteFailure(ctx, err)
		if errors.Is(err, ledger.ErrCredentials) { // refused by the commit that would have held or sent the call
			result.Outcome.Type, result.Outcome.Code = states.TypeBlocked, policy.CodeCredentialsChanged
		}
		r.runner.logCall(ctx, call, run.ID(), result.Outcome)
		answer := r.answerRefused(refusalOf(run, result.Outcome), false)
		answer.TokenRefused = errors.Is(err, ledger.ErrToken)
		answer.Judged = spanJudgement(run.ID(), result.Outcome)
		return answer
	}

	r.runner.writeFailed.Store(nil)
	if result.Outcome.Type == states.TypePending && r.runner.options.Ledger != nil {
		r.runner.measureOutcome(result.Outcome)
		return r.answerWaiting(ctx, call, heldRun(run), true)
	}

	r.runner.logCall(ctx, call, run.ID(), result.Outcome)
	if rpc == nil {
		return r.answerEnded(result, nil)
	}
	return r.answerEnded(result, wire.ErrorObject(rpc.Code, r.Secrets.String(rpc.Message), r.mask(rpc.Data)))
}

// answerEnded returns the answer to an agent whose run has ended. rpc is the server's error, if the
// server answered the call with one.
func (r *ConfiguredRunner) answerEnded(result Result, rpc jsontext.Value) (answer gateway.Answer) {
	o := result.Outcome
	switch {
	case o.Effect == states.EffectDone && result.Run.Raw() != nil:
		answer = gateway.Answer{Result: result.Run.Raw(), Members: result.Run.RawMembers(), Native: true}
	case rpc != nil && o.Type == states.TypeFailed:
		answer = gateway.Answer{Error: rpc}
	case o.Code == policy.CodeToolUnknown && !r.hidesReasons():
		answer = gateway.Answer{Error: wire.ErrorObject(wire.InvalidParams, "Unknown tool: "+o.Reason, nil)}
	default:
		answer = r.answerRefused(refusalOf(result.Run, o), o.Type == states.TypeBlocked)
	}
	answer.Judged = spanJudgement(result.Run.ID(), o)
	return answer
}

// refuseUnrecorded refuses a call whose record could not be read or begun.
func (r *ConfiguredRunner) refuseUnrecorded(ctx context.Context, call *gateway.ToolCall, id string,
	cause error) gateway.Answer {
	r.runner.noteWriteFailure(ctx, cause)
	o := states.Outcome{
		Type:   states.TypeFailed,
		Code:   policy.CodeRecordFailed,
		Gate:   policy.GateRun,
		Effect: states.NotSent,
		Reason: cause.Error(),
	}

	// The delivery may be recorded: then a repetition is a new call.
	if errors.Is(cause, ledger.ErrUnsettled) {
		o.Effect = states.EffectUnknown
	}

	r.runner.logCall(ctx, call, id, o)
	answer := r.answerRefused(gateway.Decision{
		Code:   string(o.Code),
		Reason: o.Reason,
		RunID:  id,
		Effect: string(o.Effect),
		Retry:  retryOf(o),
	}, false)

	answer.TokenRefused = errors.Is(cause, ledger.ErrToken)
	answer.Judged = spanJudgement(id, o)
	return answer
}
