package runner

import (
	"context"
	"fmt"
	"log/slog"

	"pgfsm/internal/runner/ratelimit"
	"pgfsm/internal/telemetry"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
)

// limitRequest limits the requests of an agent before the gateway reads them.
func (r *Runner) limitRequest(from gateway.Identity, says *policy.Identity) (seconds int, why string) {
	active := r.Configured()
	refused := active.limits.Request(from, says)
	if refused == nil {
		return 0, ""
	}
	r.noteLimited(context.Background(), refused, from, "", "")
	return refused.Seconds(), active.limitReason(refused)
}

// limitCall counts a call as under way. A call that no rule lets the client make will be blocked,
// so it uses up no limit of the callers that may make it.
func (r *ConfiguredRunner) limitCall(call *gateway.ToolCall) (*ratelimit.Call, *ratelimit.Refusal) {
	server, tool := call.Server, call.Tool
	if !r.Bundle.Names(server, tool, call.Identity) {
		server, tool = "", ""
	}
	return r.limits.Call(call.From, call.Identity, server, tool)
}

// refuseLimited refuses a call before its run begins. Nothing is recorded, so a flood of calls
// cannot fill the ledger.
func (r *ConfiguredRunner) refuseLimited(ctx context.Context, call *gateway.ToolCall,
	refused *ratelimit.Refusal) gateway.Answer {
	r.runner.noteLimited(ctx, refused, call.From, call.Server, call.Tool)
	return r.answerRefused(gateway.Decision{
		After:  refused.Seconds(),
		Code:   string(policy.CodeRateLimited),
		Effect: string(states.NotSent),
		Retry:  retryLater,
		Reason: fmt.Sprintf("%s Send the call again in %d s.", r.limitReason(refused), refused.Seconds()),
	}, false)
}

// limitReason returns a text that names the exhausted limit, if serve.denials shows reasons to
// agents.
func (r *ConfiguredRunner) limitReason(refused *ratelimit.Refusal) string {
	if r.hidesReasons() {
		return "A limit is used up."
	}
	return refused.String()
}

// noteLimited counts and logs a limited request or call. Without debug messages it logs one line a
// second: agents can cause any number.
func (r *Runner) noteLimited(ctx context.Context, refused *ratelimit.Refusal, from gateway.Identity, server,
	tool string) {
	r.metrics.Limited(refused.By)
	level := slog.LevelDebug
	r.limited.Do(func() { level = slog.LevelInfo })
	if r.log.Enabled(ctx, level) {
		r.log.Log(ctx, level, "limited", append([]any{"by", refused.By, "actor", from.Name, "server", server, "tool",
			visible.Clip(tool, maxToolShown),
			"retry_after_s", refused.Seconds()}, traceKey(telemetry.TraceID(ctx))...)...)
	}
}
