package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/internal/deadline"
	"pgfsm/internal/telemetry"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Call takes an agent's call through the machine. If the call repeats one that was held, Call
// answers with the outcome of that call.
func (r *ConfiguredRunner) Call(ctx context.Context, call *gateway.ToolCall) gateway.Answer {
	r.runner.calls.Add(1)
	defer r.runner.calls.Done()

	request, failed := r.agentRequest(ctx, call)
	if failed != nil {
		return gateway.Answer{Error: failed}
	}
	sent := r.Bundle.ReadSentCall(call.Server, call.Tool, call.Arguments)
	limited, refused := r.limitCall(call)
	if refused != nil {
		return r.answerLimited(ctx, call, &request, sent.Plan(), refused)
	}
	defer limited.End()
	if call.Unconnected != nil || call.Person && call.Tool == gateway.ConnectTool {
		limited.Return()
		return r.answerUnconnected(ctx, call, &request, sent.Plan())
	}

	id, err := uuid.NewV7()
	if err == nil {
		request.Session, request.MCPSession, err = r.sessionOf(ctx, call, sent.Plan())
	}
	if err != nil {
		return r.refuseUnrecorded(ctx, call, "", err)
	}
	runCtx, cancel := deadline.Within(ctx, r.runTimeout())
	defer cancel()
	run := states.NewSentRun(id.String(), request, sent, r.Bundle)

	// Effects go from outside to inside: the ledger answers questions about earlier calls
	// (ledger.RunRecorder.Effects, set in record.go by Advance), heldCallLimit bounds held calls, and Live passes
	// the rest to ports: listing tools and the call itself.
	ports := &agentPorts{configured: r, call: call, memory: r.Upstreams.Memory(call.From.Owner())}
	defer ports.memory.Release()
	var handler states.EffectHandler = &states.Live{Watcher: ports, Tools: ports, Caller: ports}
	if r.runner.options.Ledger != nil {
		limit := &heldCallLimit{
			EffectHandler: handler,
			configured:    r,
			run:           run,
			by:            callerOf(call.From),
		}
		defer limit.endReservation()
		handler = limit
	}

	// The run ends or is held here; everything after it is the answer.
	record := r.runner.beginCallRecord(run, callerOf(call.From), r.mayAttach(&request, sent.Plan()))
	result, err := r.runner.advanceRecorded(runCtx, run, record, handler, nil)
	var repeats *ledger.AttachError
	if errors.As(err, &repeats) { // the call takes nothing of the limits: it was counted when it was held
		limited.Return()
		limited.End()
		return r.answerRepeated(ctx, call, repeats.Run)
	}
	if result.Outcome.Type == states.TypeBlocked {
		limited.Return()
		r.dropListing(call.Server, result.Outcome, ports.cached)
	}
	limited.End() // a held call is not under way while it waits

	return r.answerCall(ctx, call, run, ports.failed, result, err)
}

// agentRequest returns the request of a run for an agent's call, without the call itself. The error
// object says why there is none.
func (r *ConfiguredRunner) agentRequest(ctx context.Context, call *gateway.ToolCall) (request states.Request,
	failed jsontext.Value) {
	request = states.Request{
		Account:  recordedAccount(call.Account),
		Actor:    call.From.Name,
		At:       r.runner.timestamp(),
		Identity: r.Bundle.Recorded(call.From.Name, call.Identity),
		Kind:     states.KindAgent,
		Trace:    (*states.TraceContext)(telemetry.CallOf(ctx)),
	}
	if call.Extra == nil {
		return request, nil
	}

	round, err := canonical.JSON(call.Extra)
	if err != nil {
		return request, wire.ErrorObject(wire.InvalidParams,
			"inputResponses and requestState are not strict JSON", nil)
	}
	request.Round = round
	return request, nil
}

// Wait returns when every call of an agent has been recorded to its end, also if its client was
// disconnected.
func (r *Runner) Wait() { r.calls.Wait() }

// traceKey returns the log attribute with a trace's id; none if the id is empty.
func traceKey(id string) []any {
	if id == "" {
		return nil
	}
	return []any{"trace", id}
}

// maxToolShown bounds a tool's name in a log line, in bytes: agents choose the name.
const maxToolShown = 256

// fullName returns the requester's name for people.
func fullName(call *gateway.ToolCall) string {
	if call.Identity == nil {
		return call.From.Name
	}
	return policy.FullName(call.From.Name, call.Identity.Display)
}

// logCall logs how a call ended. Successful calls are logged at the debug level only.
func (r *Runner) logCall(ctx context.Context, call *gateway.ToolCall, id string, o states.Outcome) {
	r.measureOutcome(o)
	level := outcomeLevel(o)
	if o.Type == states.TypeToolResult {
		level = slog.LevelDebug
	}
	r.logOutcome(level, id, fullName(call), call.Server, call.Tool, telemetry.TraceID(ctx), o)
}

// logResumed logs how a held call ended. Unlike logCall, it also logs successful calls, because
// people decided about them.
func (r *Runner) logResumed(ctx context.Context, id string, o states.Outcome) {
	q, err := r.readRequest(ctx, id)
	if err != nil {
		r.reportf("the ended run %s cannot be read: %s", id, err)
	}
	r.logOutcome(outcomeLevel(o), id, policy.FullName(q.Actor, q.Display), q.Server, q.Tool,
		cmp.Or(q.CallTrace, q.Trace), o)
}

func outcomeLevel(o states.Outcome) slog.Level {
	if o.Type == states.TypeFailed || o.Code == policy.CodeRewritten {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func (r *Runner) logOutcome(level slog.Level, run, actor, server, tool, trace string, o states.Outcome) {
	ctx := context.Background()
	if !r.log.Enabled(ctx, level) {
		return
	}
	r.log.Log(ctx, level, "call", append([]any{
		"run", run, "actor", actor, "server", server, "tool", visible.Clip(tool, maxToolShown), "state", o.State,
		"code", string(o.Code), "effect", string(o.Effect), "reason", visible.Text(o.Reason),
	}, traceKey(trace)...)...)
}
