package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/config"
	"pgfsm/internal/telemetry"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

const (
	// retryAfter tells an agent how long to wait before it asks again, in seconds: approvers take
	// minutes.
	retryAfter = 15
	// noticeEvery is the interval of the notices to the client of a call that is held open: clients
	// give up on silence.
	noticeEvery = 5 * time.Second
)

// A heldCall is a call that waits for approval, as its client sees it.
type heldCall struct{ id, task, policy, reason, since, updated string }

func heldRun(run *states.Run) heldCall {
	f := run.Facts()
	requested := run.Request().At
	return heldCall{
		id:      run.ID(),
		task:    taskID(run.ID(), f.Held.Binding),
		policy:  f.Assessed.Policy,
		reason:  f.Held.Reason,
		since:   requested,
		updated: requested,
	}
}

func heldRequest(q *ledger.RunRow) heldCall {
	return heldCall{
		id:      q.RunID,
		task:    taskID(q.RunID, q.Binding),
		policy:  q.Policy,
		reason:  q.Reason,
		since:   q.At,
		updated: q.Updated,
	}
}

// answerWaiting answers for a call that waits for approval. If the client accepts tasks, the answer
// is a task. Otherwise answerWaiting holds the call open for a while, and then answers that the
// call waits. The run is in the ledger, and no process owns it. Only the first request shows the
// client where to decide, because a client repeats its call every few seconds.
func (r *ConfiguredRunner) answerWaiting(ctx context.Context, call *gateway.ToolCall, w heldCall,
	first bool) gateway.Answer {
	answer := r.answerHeld(ctx, call, w, first)
	if answer.Run == "" { // otherwise the answer has the outcome
		answer.Judged = gateway.Judged{Run: w.id, Decision: rules.Pending, Gate: string(policy.GatePolicy)}
	}
	return answer
}

func (r *ConfiguredRunner) answerHeld(ctx context.Context, call *gateway.ToolCall, w heldCall,
	first bool) gateway.Answer {
	level := slog.LevelInfo
	if !first { // an agent may repeat its call as often as it likes
		level = slog.LevelDebug
	}

	r.runner.log.Log(ctx, level, "held", append([]any{
		"run", w.id, "actor", fullName(call), "server", call.Server, "tool", visible.Clip(call.Tool, maxToolShown),
		"policy", w.policy}, traceKey(telemetry.TraceID(ctx))...)...)
	if call.Tasks {
		return gateway.Answer{Result: r.workingTask(w).asResult()}
	}

	if url := r.Serve.DecideAt(w.id); url != "" && first && call.Elicit {
		call.ShowURL(url, r.waitingNotice(w), w.id)
		if call.Repeat { // the client sends the call again, and the gateway holds that one open
			return r.answerPending(ctx, call, w)
		}
	}

	if r.Serve.Hold > 0 {
		if answer, ended := r.holdOpen(ctx, call, w); ended {
			return answer
		}
	}

	return r.answerPending(ctx, call, w)
}

// waitingNotice returns the text that a call waits, with the reason if serve.denials shows reasons
// to agents.
func (r *ConfiguredRunner) waitingNotice(w heldCall) string {
	if r.hidesReasons() {
		return "A person has to decide about this call."
	}
	return "A person has to decide about this call: " + w.reason
}

// holdOpen holds the call open until the run has ended. It waits for the decision for
// approvals.hold at most. If there is no outcome by then, ended is false and the run stays held.
func (r *ConfiguredRunner) holdOpen(ctx context.Context, call *gateway.ToolCall, w heldCall) (answer gateway.Answer,
	ended bool) {
	hold := time.Duration(r.Serve.Hold) * time.Millisecond
	holdCtx, cancel := context.WithTimeout(ctx, hold+r.runTimeout()+r.Upstreams.TimeoutTotal(call.Server))
	defer cancel()
	// The client gets progress while its call waits; without a decision, the run stays
	// held.
	begun, lastNotice := time.Now(), time.Time{}
	var last ledger.Status
	err := ledger.PollChanges(holdCtx, func() (changed, done bool, err error) {
		q, err := r.runner.readRequest(holdCtx, w.id)
		if err != nil || q.Ended != "" {
			return true, true, err
		}
		changed, last = q.Status != last, q.Status
		waited := time.Since(begun)
		if q.Status == ledger.Pending && waited >= hold {
			return changed, true, errUndecided
		}
		if time.Since(lastNotice) >= noticeEvery {
			lastNotice = time.Now()
			call.SendProgress(waited.Seconds(), hold.Seconds(), r.waitingNotice(w))
		}
		return changed, false, nil
	})
	if err != nil {
		return answer, false
	}
	if answer, first := r.deliverOutcome(ctx, call, w.id, ledger.ByReply); first {
		return answer, true
	}

	return r.answerRefused(gateway.Decision{
		Code:   "outcome_delivered",
		Effect: string(states.EffectUnknown),
		Policy: w.policy,
		Retry:  retryNo,
		RunID:  w.id,
		Reason: "Another request has already received the outcome of this call.",
	}, false), true
}

var errUndecided = errors.New("nobody has decided within the time that the call is held open")

// answerPending returns the answer that the call waits.
func (r *ConfiguredRunner) answerPending(ctx context.Context, call *gateway.ToolCall, w heldCall) gateway.Answer {
	decide := r.Serve.DecideAt(w.id)
	if decide == "" {
		decide = "pgfsm approvals show " + w.id
	}

	d := gateway.Decision{
		After:  retryAfter,
		Code:   string(policy.CodeApprovalRequired),
		Decide: decide,
		Effect: string(states.NotSent),
		Policy: w.policy,
		Reason: fmt.Sprintf("%s The call waits for approval as run %s. Repeat the identical call later to get its outcome.", w.reason, w.id),
		Retry:  retrySame,
		RunID:  w.id,
	}

	if r.hidesReasons() {
		d.Policy, d.Decide, d.Reason = "", "",
			"A person has to decide about this call. Repeat the identical call later."
	}

	// If the tool declares an output type, clients refuse a result without structured content,
	// unless it is an error.
	failed := r.Serve.OnPending == config.PendingError || r.declaresOutput(ctx, call)
	return gateway.Answer{Result: d.Result(failed)}
}

// declaresOutput reports whether the tool declares an output type. It returns true if that is
// unknown.
func (r *ConfiguredRunner) declaresOutput(ctx context.Context, call *gateway.ToolCall) bool {
	link, err := call.Connect(ctx)
	if err != nil {
		return true
	}
	cached, err := link.Listing(ctx, r.catalogMaxAge())
	if err != nil {
		return true
	}
	for _, t := range r.viewOf(cached).sent {
		if t.Name != call.Tool {
			continue
		}
		var typed struct {
			Output jsontext.Value `json:"outputSchema"`
		}
		return json.Unmarshal(t.Raw, &typed) != nil || typed.Output != nil
	}
	return true
}
