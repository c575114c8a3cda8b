package runner

import (
	"context"
	"slices"
	"strconv"
	"time"

	"pgfsm/internal/telemetry"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// measureOutcome counts a call that was held or has ended.
func (r *Runner) measureOutcome(o states.Outcome) {
	r.metrics.Decided(decisionOf(o), string(o.Gate))
	if o.Effect == states.EffectUnknown && !o.Waits() {
		r.metrics.Indeterminate()
	}
}

// decisionOf returns the decision about a call that was held or has ended.
func decisionOf(o states.Outcome) string {
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary, states.TypeFinalAnswer, states.TypeDelegated, states.TypeReported, states.TypeUnreported:
		return rules.Allow
	case states.TypeBlocked:
		return rules.Deny
	case states.TypePending:
		return rules.Pending
	}
	return "failed"
}

// spanJudgement returns the attributes of a run for the span of an agent's request.
func spanJudgement(run string, o states.Outcome) gateway.Judged {
	return gateway.Judged{Run: run, Decision: decisionOf(o), Gate: string(o.Gate)}
}

// measureCall measures a call of a server, and exports its span. The parent is the trace context of
// the agent's request, if there is one.
func (r *ConfiguredRunner) measureCall(c *states.CallTool, parent *states.TraceContext, begun time.Time,
	got upstream.Returned) {
	o := telemetry.Operation{
		Method:    gateway.MethodCall,
		Server:    c.Server,
		Tool:      c.Tool,
		ErrorType: got.Code,
		Begun:     begun,
		Took:      time.Since(begun),
		Run:       c.Run,
		Protocol:  got.Protocol,
	}

	if got.Code == "" && gateway.IsError(got.Result, got.Members) {
		o.ErrorType = gateway.ToolError
	}

	if got.ID != 0 {
		o.RequestID = strconv.FormatInt(got.ID, 10)
	}

	for _, s := range r.Bundle.Content().Servers {
		if s.Name == c.Server {
			o.URL = s.URL
		}
	}

	r.runner.metrics.Called(o)
	r.runner.options.Tracer.Called((*telemetry.Context)(c.Trace), (*telemetry.Context)(parent), o)
}

// measureRequest measures a request of an agent, and exports its span. Tools that the allowlist
// does not name share one name: agents can send any.
func (r *ConfiguredRunner) measureRequest(ctx context.Context, op gateway.Operation) {
	o := telemetry.Operation{
		Method:    op.Method,
		Server:    op.Server,
		Tool:      op.Tool,
		ErrorType: op.ErrorType,
		Begun:     op.Begun,
		Took:      op.Took,
		RequestID: op.ID,
		Protocol:  op.Protocol,
		Stdio:     op.Stdio,
		Run:       op.Run,
		Decision:  op.Decision,
		Gate:      op.Gate,
	}
	if o.Method == "" {
		o.Method = telemetry.Other
	}

	listed := func(a policy.Allowance) bool { return a.Server == op.Server && slices.Contains(a.Tools, op.Tool) }
	if o.Method == gateway.MethodCall && !slices.ContainsFunc(r.Bundle.Content().Allowlist, listed) {
		o.Tool = telemetry.Other
	}

	if o.Method == gateway.MethodCall && o.Server == "" {
		o.Server = telemetry.Other
	}

	r.runner.metrics.Served(o)
	r.runner.options.Tracer.Served(ctx, o)
}

// measureWait measures how long people took to decide about a held call.
func (r *Runner) measureWait(q *ledger.RunRow) {
	decision := map[ledger.Status]string{ledger.Approved: rules.Allow, ledger.Denied: rules.Deny}[q.Status]
	requested, err := time.Parse(policy.TimeForm, q.At)
	decided, err2 := time.Parse(policy.TimeForm, q.Updated)
	if decision == "" || err != nil || err2 != nil {
		return
	}
	r.metrics.Waited(decided.Sub(requested), decision)
}

// maxPendingCounted bounds how many held calls are counted.
const maxPendingCounted = 1_000

// pendingReadTime bounds the time in which the ledger must count them.
const pendingReadTime = 2 * time.Second

// measureService registers the readers of the metrics about the whole service.
func (s *Service) measureService() {
	m, l, first := s.runner.metrics, s.runner.options.Ledger, s.runner.Configured()
	if first.Bundle != nil {
		m.Bundle(func() string { return string(s.runner.Configured().Bundle.Digest()) })
	}
	if first.Upstreams != nil {
		m.ServerSessions(func() (open, most int) { return s.runner.Configured().Upstreams.Processes() })
	}
	if l != nil {
		l.MeasureCommits(m.Committed)
		m.Pending(s.countPending)
		m.Prunes(s.countPrunes)
	}
}

// countPrunes counts the prunes of the ledger.
func (s *Service) countPrunes() (retentions, erasures int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pendingReadTime)
	defer cancel()
	return s.runner.options.Ledger.CountPrunes(ctx)
}

// countPending counts the held calls that wait for people.
func (s *Service) countPending() (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pendingReadTime)
	defer cancel()
	err = s.runner.options.Ledger.View(ctx, func(r ledger.Reader) error {
		n = 0
		for _, err := range r.Runs(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Open: true,
			Limit: maxPendingCounted}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}
