package api

import (
	"errors"

	"pgfsm/internal/visible"
)

// A ReloadError holds the reason why the operator's files cannot become the active configuration.
type ReloadError struct{ Why error }

func (e *ReloadError) Error() string { return e.Why.Error() }

func (e *ReloadError) Unwrap() error { return e.Why }

// reloadConfig has the service read its configuration again.
func (h *Handler) reloadConfig(c *call) (answer, error) {
	if h.Reload == nil {
		return answer{}, newProblem(PathUnknown, "this service cannot read its configuration again: start it again")
	}
	done, err := h.Reload(c.r.Context(), c.caller)
	if no := (*ReloadError)(nil); errors.As(err, &no) {
		refused := newProblem(ReloadRefused, "")
		// A fault's place takes several lines.
		refused.Detail = visible.Lines(visible.Cut(no.Error(), maxDetail, "…"))
		return answer{}, refused
	}
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(done), nil
}
