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
		return answer{}, newProblem(ReloadRefused, visible.Lines(done.Reason))
	}
	return jsonAnswer(done), nil
}
