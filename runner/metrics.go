package runner

import (
	"context"
	"slices"
	"time"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/telemetry"
	"pgfsm/traces/ledger"
)

// measureOutcome counts a call that was held or has ended.
func (r *Runner) measureOutcome(o states.Outcome) {
	decision := "failed"
	switch o.Type {
	case states.TypeToolResult, states.TypeSummary, states.TypeFinalAnswer:
		decision = rules.Allow
	case states.TypeBlocked:
		decision = rules.Deny
	case states.TypePending:
		decision = rules.Pending
	}
	r.options.Metrics.Decided(decision, string(o.Gate))
	if o.Effect == states.EffectUnknown && o.Type != states.TypePending {
		r.options.Metrics.Indeterminate()
	}
}

// measureCall measures a call of a server.
func (r *Runner) measureCall(server, tool string, begun time.Time, got upstream.Returned) {
	o := telemetry.Operation{Method: gateway.MethodCall, Server: server, Tool: tool, ErrorType: got.Code, Took: time.Since(begun)}
	if got.Code == "" && gateway.IsError(got.Result) {
		o.ErrorType = gateway.ToolError
	}
	r.options.Metrics.Called(o)
}

// measureRequest measures a request of an agent. Tools that the allowlist does not name share one name: agents can send any.
func (r *Runner) measureRequest(of gateway.Operation) {
	o := telemetry.Operation{Method: of.Method, Server: of.Server, Tool: of.Tool, ErrorType: of.ErrorType, Took: of.Took}
	if o.Method == "" {
		o.Method = telemetry.Other
	}
	listed := func(a policy.Allowance) bool { return a.Server == of.Server && slices.Contains(a.Tools, of.Tool) }
	if o.Method == gateway.MethodCall && !slices.ContainsFunc(r.options.Bundle.Content().Allowlist, listed) {
		o.Tool = telemetry.Other
	}
	if o.Method == gateway.MethodCall && o.Server == "" {
		o.Server = telemetry.Other
	}
	r.options.Metrics.Served(o)
}

// measureWait measures how long people took to decide about a held call.
func (r *Runner) measureWait(q *ledger.Request) {
	decision := map[ledger.Status]string{ledger.Approved: rules.Allow, ledger.Denied: rules.Deny}[q.Status]
	asked, err := time.Parse(policy.TimeForm, q.At)
	decided, err2 := time.Parse(policy.TimeForm, q.Updated)
	if decision != "" && err == nil && err2 == nil {
		r.options.Metrics.Waited(decided.Sub(asked), decision)
	}
}

// maxPendingCounted bounds how many held calls are counted.
const maxPendingCounted = 1_000

// pendingReadTime bounds the time in which the ledger must count them.
const pendingReadTime = 2 * time.Second

// measureService has the metrics read what they show of the whole service.
func (s *Service) measureService() error {
	m, l, b := s.runner.options.Metrics, s.runner.options.Ledger, s.runner.options.Bundle
	if b != nil {
		if err := m.Bundle(string(b.Digest())); err != nil {
			return err
		}
	}
	if m == nil || l == nil {
		return nil
	}
	l.MeasureCommits(m.Committed)
	return m.Pending(func(ctx context.Context) (n int64, err error) {
		ctx, cancel := context.WithTimeout(ctx, pendingReadTime)
		defer cancel()
		err = l.View(ctx, func(r ledger.Reader) error {
			n = 0
			for _, err := range r.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Open: true, Limit: maxPendingCounted}) {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		})
		return n, err
	})
}
