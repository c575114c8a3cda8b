package fromtraces

import (
	"strings"

	"pgfsm/eval"
	"pgfsm/policy"
	"pgfsm/policy/visible"
)

const (
	// runIDBytes are those of a run's id, which is a UUID in its one spelling.
	runIDBytes = 36
	// maxNameBytes is what of a case's id is left beside the mark of a cut, a slash and the whole id of a run.
	maxNameBytes = eval.MaxIDBytes - len(cutMark) - len("/") - runIDBytes
	cutMark      = "…"
)

// nameOf is the id of a case: the tool, or the code by which a request without a plan was stopped, and the run. A tool may be
// called anything by a planner, so what cannot be shown of it is written as escapes, and a long name is cut.
func nameOf(call *eval.Call, code policy.Code, run string) string {
	name := call.Tool
	if call.Plan != nil {
		name = string(code)
	}
	return visible.Cut(visible.Text(name), maxNameBytes, cutMark) + "/" + run
}

// lastGroup is the last group of a run's id, 12 digits drawn at random. What the id begins with is the time, which runs of a
// minute share.
func lastGroup(run string) string { return run[strings.LastIndexByte(run, '-')+1:] }

// nameApart gives cases that one id fell to the whole id of their run in the place of its end.
func nameApart(cases []*taken) {
	times := make(map[string]int)
	for _, t := range cases {
		times[t.c.ID]++
	}
	for _, t := range cases {
		if times[t.c.ID] > 1 {
			t.c.ID = strings.TrimSuffix(t.c.ID, lastGroup(t.c.Task)) + t.c.Task
		}
	}
}
