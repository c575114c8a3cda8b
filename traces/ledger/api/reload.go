package api

import (
	"errors"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
)

// A ReloadError holds the reason why the operator's files cannot become the active configuration.
type ReloadError struct{ Why error }

func (e *ReloadError) Error() string { return e.Why.Error() }

func (e *ReloadError) Unwrap() error { return e.Why }

// reload has the service read its configuration again.
func (h *Handler) reload(v *visit) (present.Reload, error) {
	if h.Reload == nil {
		return present.Reload{}, newProblem(PathUnknown,
			"this service cannot read its configuration again: start it again")
	}
	reloaded, err := h.Reload(v.r.Context(), v.caller)
	if refusal := (*ReloadError)(nil); errors.As(err, &refusal) {
		refused := newProblem(ReloadRefused, "")
		// A fault's place takes several lines.
		refused.Detail = visible.Lines(visible.Cut(refusal.Error(), maxDetail, "…"))
		err = refused
	}
	return reloaded, err
}
