package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// maxStatusResult bounds the result that GET /status and ledger show show, in bytes.
const maxStatusResult = 64 << 10

// results shows the results of calls that were made: as their agents get them, and without counting as a delivery.
type results struct{ replayer *traces.Replayer }

// of returns the result of a request's call. Nil: it has none, or note says why it is not shown.
func (s results) of(ctx context.Context, r ledger.Reader, q *ledger.Request) (result jsontext.Value, note string, err error) {
	if q.Sent == "" || q.Ended == "" {
		return nil, "", nil
	}
	got, err := ledger.Ended(ctx, r, s.replayer, q.RunID)
	if err != nil || got.Outcome.Effect != states.EffectDone || got.Run.Raw() == nil {
		return nil, "", err
	}
	result = gateway.Delivered(gateway.StripOwn(got.Run.Raw()), q.RunID)
	switch {
	case len(result) > maxStatusResult:
		return nil, fmt.Sprintf("the result has %d bytes; at most %d are shown here", len(result), maxStatusResult), nil
	case !result.IsValid():
		return nil, "the result is not strict JSON", nil
	}
	return result, "", nil
}

// agentStatus is the answer to GET /status/{run} at the agents' address.
type agentStatus struct {
	SchemaVersion int            `json:"schema_version"`
	Run           string         `json:"run"`
	Status        ledger.Status  `json:"status"`
	At            string         `json:"at"`
	Ended         string         `json:"ended"`
	Server        string         `json:"server"`
	Tool          string         `json:"tool"`
	Code          string         `json:"code"`
	Reason        string         `json:"reason"`
	Result        jsontext.Value `json:"result"`
	ResultNote    string         `json:"result_note"`
}

// Status returns the status document of the caller's run, or nil if the caller has no such run.
func (g *gate) Status(ctx context.Context, who gateway.Identity, run string) (doc []byte, err error) {
	var d agentStatus
	err = g.ledger.View(ctx, func(r ledger.Reader) error {
		q, err := r.Request(run)
		if err == nil && q.Actor != who.Name { // somebody else's is none
			err = ledger.ErrNotFound
		}
		if err != nil {
			return err
		}
		d = agentStatus{
			SchemaVersion: schemaVersion, Run: q.RunID, Status: q.Status, At: q.At, Ended: q.Ended, Server: q.Server, Tool: q.Tool,
		}
		if !g.opaque() {
			d.Code, d.Reason = q.Code, q.Reason
		}
		result, note, err := results{g.replayer}.of(ctx, r, &q)
		if err != nil {
			g.log.WarnContext(ctx, "status", "run", run, "error", visible.Text(err.Error()))
			note = "the result cannot be shown"
		}
		d.Result, d.ResultNote = orNull(result), note
		return nil
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return canonical.MustSorted(d), nil
}
