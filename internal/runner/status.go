package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/wire"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// maxShownResult bounds the result in GET /status and in the output of ledger show, in bytes.
const maxShownResult = 64 << 10

// CallResult returns the result of a request's call in the agent's form. Reading it does not count
// as a delivery. If there is no result, or note says why it is not shown, the result is nil.
func (r *Runner) CallResult(ctx context.Context, look ledger.Reader, q *ledger.RunRow) (result jsontext.Value,
	note string, err error) {
	return CallResult(ctx, look, r.replayer, q)
}

// CallResult does the same as [Runner.CallResult], with a replayer instead of a Runner.
func CallResult(ctx context.Context, look ledger.Reader, p *traces.Replayer,
	q *ledger.RunRow) (result jsontext.Value, note string, err error) {
	if q.Sent == "" || q.Ended == "" {
		return nil, "", nil
	}
	ended, err := ledger.Ended(ctx, look, p, q.RunID)
	if err != nil || ended.Outcome.Effect != states.EffectDone || ended.Run.Raw() == nil {
		return nil, "", err
	}
	result = gateway.Delivered(wire.StripOwn(ended.Run.Raw()), q.RunID)
	switch {
	case len(result) > maxShownResult:
		return nil, fmt.Sprintf("the result has %d bytes; at most %d are shown here", len(result), maxShownResult), nil
	case !result.IsValid():
		return nil, "the result is not strict JSON", nil
	}
	return result, "", nil
}

// agentStatus is the body of GET /status/{run} at the agents' address.
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

// Status returns the status document of a caller's run, or nil if the caller has no such run. It
// needs a ledger.
func (r *ConfiguredRunner) Status(ctx context.Context, caller gateway.Identity, run string) (doc []byte, err error) {
	var d agentStatus
	err = r.runner.options.Ledger.View(ctx, func(look ledger.Reader) error {
		q, err := look.Run(run)
		if err != nil {
			return err
		}
		if !callerOf(caller).IsRequester(&q) {
			return ledger.ErrNotFound
		}

		d = agentStatus{
			SchemaVersion: present.SchemaVersion,
			Run:           q.RunID,
			Status:        q.Status,
			At:            q.At,
			Ended:         q.Ended,
			Server:        q.Server,
			Tool:          q.Tool,
		}

		if !r.hidesReasons() {
			d.Code, d.Reason = q.Code, q.Reason
		}

		if d.Result, d.ResultNote, err = r.runner.CallResult(ctx, look, &q); err != nil {
			r.runner.log.WarnContext(ctx, "status", "run", run, "error", visible.Error(err))
			d.ResultNote = "the result cannot be shown"
		}

		if d.Result == nil {
			d.Result = jsontext.Value("null")
		}

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
