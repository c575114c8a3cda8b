package api

import (
	"net/http"

	"pgfsm/policy/visible"
)

// reloadConfig has the service read its configuration again.
func (h *Handler) reloadConfig(c *call) (answer, error) {
	if h.reload == nil {
		return answer{}, newProblem(PathUnknown, "this service cannot read its configuration again: start it again")
	}
	if c.r.ContentLength != 0 || c.r.Body != http.NoBody {
		return answer{}, newProblem(BodyNotExpected, "a body came where none belongs")
	}
	done, err := h.reload(c.r.Context(), c.caller)
	switch {
	case err != nil:
		return answer{}, err
	case !done.OK:
		refused := newProblem(ReloadRefused, "")
		refused.Detail = visible.Lines(done.Reason[:min(len(done.Reason), maxDetail)]) // the place of a fault takes several lines
		return answer{}, refused
	}
	return jsonAnswer(done), nil
}
