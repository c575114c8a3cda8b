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

// The reasons of a service whose ledger is not the cause.
const (
	WorkerBehind        Reason = "worker_behind"
	NotRecording        Reason = "not_recording"
	AllowlistUnreadable Reason = "allowlist_unreadable"
)

// ledgerUnavailable means that the ledger is unreachable, locked or full, or does not answer in time.
const ledgerUnavailable Reason = "ledger_unavailable"

// reasons describes each reason, and names the ledger's errors that are of it. An error has the
// first reason that matches. The texts name no address and no file: /readyz needs no token.
var reasons = []struct {
	reason Reason
	text   string
	errors []error
}{
	{"ledger_fenced", "another replica has taken over the runs of this process, which ends", []error{ledger.ErrFenced}},
	{"ledger_lost", "the ledger has lost acknowledged entries", []error{ledger.ErrLost}},
	{"ledger_schema", "the ledger does not have the schema of this version of pgfsm", []error{ledger.ErrSchema}},
	{"ledger_read_only", "the ledger cannot be written", []error{ledger.ErrReadOnly}},
	{"ledger_behind", "the ledger's clock is behind its last entry", []error{ledger.ErrClockBack}},
	{ledgerUnavailable, "the ledger cannot be reached, read or written now",
		[]error{ledger.ErrUnavailable, ledger.ErrUnsettled}},
	{WorkerBehind, "decided calls cannot be found", nil},
	{NotRecording, "the last run could not be recorded", nil},
	{AllowlistUnreadable, "the allowlist cannot be read, so every call is refused", nil},
}

// text describes the reason for people.
func (reason Reason) text() string {
	for _, known := range reasons {
		if known.reason == reason {
			return known.text
		}
	}
	return ""
}

// NotReady is one cause for a service not to be ready. Only the log contains the error.
type NotReady struct {
	Reason Reason
	Err    error
}

// NewNotReady returns the cause of an error. If the error is none of the ledger's, the reason is
// otherwise.
func NewNotReady(err error, fallback Reason) NotReady {
	for _, known := range reasons {
		if slices.ContainsFunc(known.errors, func(is error) bool { return errors.Is(err, is) }) {
			return NotReady{known.reason, err}
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

// warningTexts describes each warning.
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

// health returns the state of the service. If the service is not ready, it logs the causes.
func (h *Handler) health(ctx context.Context) (out present.Health) {
	var causes []NotReady
	if err := h.checkReadable(ctx); err != nil {
		causes = append(causes, NewNotReady(err, ledgerUnavailable))
	}
	if h.Ready != nil {
		causes = append(causes, h.Ready(ctx)...)
	}
	for _, cause := range causes {
		h.Log("not ready: " + string(cause.Reason) + ": " + cause.Err.Error())
		row := present.Row{Name: string(cause.Reason), Value: cause.Reason.text()}
		if !slices.Contains(out.Reasons, row) {
			out.Reasons = append(out.Reasons, row)
		}
	}

	if h.Warnings != nil {
		for _, warning := range h.Warnings() {
			out.Warnings = append(out.Warnings, present.Row{Name: warning, Value: warningTexts[warning]})
		}
	}
	return out
}

// A liveness answers /healthz.
type liveness struct {
	SchemaVersion int    `json:"schema_version"`
	Status        string `json:"status"`
}

// A readiness answers /readyz.
type readiness struct {
	liveness
	Warnings []string `json:"warnings"`
}

func (h *Handler) readHealth(*visit) (liveness, error) {
	return liveness{present.SchemaVersion, "ok"}, nil
}

// readReadiness reports whether the ledger can be read and whether Options.Ready returns no cause.
func (h *Handler) readReadiness(v *visit) (readiness, error) {
	state := h.health(v.r.Context())
	out := readiness{liveness{present.SchemaVersion, "ready"}, []string{}}
	for _, warning := range state.Warnings {
		out.Warnings = append(out.Warnings, warning.Name)
	}
	if state.Ready() {
		return out, nil
	}

	p := newProblem(Unavailable, "the service is not ready: "+state.Reasons[0].Value)
	for _, reason := range state.Reasons {
		p.Reasons = append(p.Reasons, Reason(reason.Name))
	}
	return out, p
}

// writeMetrics serves the metrics of the service.
func (h *Handler) writeMetrics(*visit) (answer, error) {
	if h.Metrics == nil {
		return answer{}, newProblem(PathUnknown, "this service has no metrics")
	}
	var b bytes.Buffer
	mime, err := h.Metrics(&b)
	return answer{mime: mime, body: append(b.Bytes(), '\n')}, err
}
