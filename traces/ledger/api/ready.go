package api

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// A Reason is a stable name of one cause for a service not to be ready.
type Reason string

// The reasons. An error has the first one that matches it.
const (
	// Another replica has taken over this one's runs; the process ends.
	LedgerFenced Reason = "ledger_fenced"
	// The ledger has lost acknowledged entries; the process ends.
	LedgerLost     Reason = "ledger_lost"
	LedgerSchema   Reason = "ledger_schema"    // another version of pgfsm made the ledger
	LedgerReadOnly Reason = "ledger_read_only" //
	LedgerBehind   Reason = "ledger_behind"    // the clock is behind the time of the last entry
	// Unreachable, locked, full, or does not answer in time.
	LedgerUnavailable   Reason = "ledger_unavailable"
	WorkerBehind        Reason = "worker_behind"        // the service cannot find decided calls
	NotRecording        Reason = "not_recording"        // the last run could not be recorded
	AllowlistUnreadable Reason = "allowlist_unreadable" // every call is refused
)

// detail describes each reason. It names no address and no file: /readyz needs no token.
var reasonTexts = map[Reason]string{
	LedgerFenced:      "another replica has taken over the runs of this process, which ends",
	LedgerLost:        "the ledger has lost acknowledged entries",
	LedgerSchema:      "the ledger does not have the schema of this version of pgfsm",
	LedgerReadOnly:    "the ledger cannot be written",
	LedgerBehind:      "the ledger's clock is behind its last entry",
	LedgerUnavailable: "the ledger cannot be reached, read or written now",
	WorkerBehind:      "decided calls cannot be found", NotRecording: "the last run could not be recorded",
	AllowlistUnreadable: "the allowlist cannot be read, so every call is refused",
}

// NotReady is one cause for a service not to be ready. Only the log contains the error.
type NotReady struct {
	Reason Reason
	Err    error
}

// NewNotReady returns the cause of an error. If the error is none of the ledger's, the reason is
// otherwise.
func NewNotReady(err error, fallback Reason) NotReady {
	for _, cause := range []struct {
		is     error
		reason Reason
	}{
		{ledger.ErrFenced, LedgerFenced}, {ledger.ErrLost, LedgerLost}, {ledger.ErrSchema, LedgerSchema},
		{ledger.ErrReadOnly, LedgerReadOnly},
		{ledger.ErrClockBack, LedgerBehind}, {ledger.ErrUnavailable, LedgerUnavailable},
		{ledger.ErrUnsettled, LedgerUnavailable},
	} {
		if errors.Is(err, cause.is) {
			return NotReady{cause.reason, err}
		}
	}
	return NotReady{fallback, err}
}

// Warnings of a ready service.
const (
	WarnBundleDiffers    = "bundle_differs"
	WarnIdentityProvider = "identity_provider_unavailable"
	WarnServerSessions   = "server_sessions_scarce"
)

// warns describes each warning.
var warningTexts = map[string]string{
	WarnBundleDiffers: "another replica of this ledger has another bundle",
	WarnServerSessions: "four fifths of the processes of stdio servers that limits.server_sessions allows are running: " +
		"at the limit, unused ones end early, and calls fail if all are in use",
	WarnIdentityProvider: "an identity provider cannot be reached, and its keys are too old, so its tokens are refused",
}

// readTime bounds the time in which the ledger must answer for the service to be ready.
const readTime = 2 * time.Second

// checkReadable returns an error if there is a ledger that cannot be read.
func (h *Handler) checkReadable(ctx context.Context) error {
	if h.Ledger == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return h.Ledger.View(ctx, func(r ledger.Reader) error {
		_, err := r.End()
		return err
	})
}

// Health returns the state of the service as /readyz reports it. If the service is not ready,
// Health logs the causes.
func (h *Handler) Health(ctx context.Context) present.Health {
	causes := h.Ready(ctx)
	if err := h.checkReadable(ctx); err != nil {
		causes = append([]NotReady{NewNotReady(err, LedgerUnavailable)}, causes...)
	}
	var out present.Health
	for _, cause := range causes {
		h.Log("not ready: " + string(cause.Reason) + ": " + cause.Err.Error())
		row := present.Row{Name: string(cause.Reason), Value: reasonTexts[cause.Reason]}
		if !slices.Contains(out.Reasons, row) {
			out.Reasons = append(out.Reasons, row)
		}
	}
	for _, warning := range h.Warnings() {
		out.Warnings = append(out.Warnings, present.Row{Name: warning, Value: warningTexts[warning]})
	}
	return out
}

// readyz reports whether the ledger can be read and whether Options.Ready returns no cause.
func (h *Handler) readyz(v *visit) (answer, error) {
	state := h.Health(v.r.Context())
	if state.Ready() {
		warnings := []string{}
		for _, w := range state.Warnings {
			warnings = append(warnings, w.Name)
		}
		return jsonAnswer(readiness{health{present.SchemaVersion, "ready"}, warnings}), nil
	}
	p := newProblem(Unavailable, "the service is not ready: "+state.Reasons[0].Value)
	for _, reason := range state.Reasons {
		p.Reasons = append(p.Reasons, Reason(reason.Name))
	}
	return answer{}, p
}

// writeMetrics serves the metrics of the service.
func (h *Handler) writeMetrics(*visit) (answer, error) {
	if h.Metrics == nil {
		return answer{}, newProblem(PathUnknown, "this service has no metrics")
	}
	var b bytes.Buffer
	mime, err := h.Metrics(&b)
	return answer{mime, b.Bytes()}, err
}
