package fromtraces

import (
	"pgfsm/eval"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

const (
	// runIDBytes is the length of a run's id, a UUID.
	runIDBytes = 36
	// maxNameBytes is the room for a name in a case's id, beside the mark of a cut, a slash and the run's id.
	maxNameBytes = eval.MaxIDBytes - len(cutMark) - len("/") - runIDBytes
	cutMark      = "…"
)

// nameOf is the id of a case: the tool, or the code that stopped a request without a plan, and the run. A planner may call a tool
// anything: invisible characters are escaped, and a long name is cut.
func nameOf(call *eval.Call, code policy.Code, run string) string {
	name := call.Tool
	if call.Plan != nil {
		name = string(code)
	}
	return visible.Cut(visible.Text(name), maxNameBytes, cutMark) + "/" + run
}
