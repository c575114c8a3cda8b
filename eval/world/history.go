package world

import (
	"context"
	"slices"

	"pgfsm/eval"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/states"
)

// ReadHistory counts the calls that were made for the same task: they are the only calls, and
// within every window.
func (w *World) ReadHistory(_ context.Context, request *states.ReadHistory) states.Event {
	read := &states.HistoryRead{Calls: taskCalls(w.Before), Values: make([]policy.HistoryAnswer, len(request.Queries))}
	for i, q := range request.Queries {
		read.Values[i] = answerQuery(q, w.run.Plan(), w.Before)
	}
	switch {
	case !request.Origins:
	case w.Session == nil:
		read.Origins = states.NoOrigins("the calls before have no results")
	default:
		read.Origins = w.run.FindOrigins(w.Session, false)
	}
	return read
}

// taskCalls counts calls by tool, in the order in which tools were first called.
func taskCalls(before []eval.Target) []policy.TaskCalls {
	counts := []policy.TaskCalls{}
	for _, t := range before {
		i := slices.IndexFunc(counts, func(c policy.TaskCalls) bool { return c.Server == t.Server && c.Tool == t.Tool })
		if i < 0 {
			counts = append(counts, policy.TaskCalls{Server: t.Server, Tool: t.Tool})
			i = len(counts) - 1
		}
		counts[i].Calls++
	}
	return counts
}

func answerQuery(q policy.HistoryQuery, plan *policy.Plan, before []eval.Target) policy.HistoryAnswer {
	tally := q.Tally()
	for _, t := range before {
		if q.Of != condition.QueryCountAll && (t.Server != plan.Server || t.Tool != plan.Tool) {
			continue
		}
		if tally.Add(t.Args) != nil {
			return q.Fail("a call before has no number there")
		}
	}
	return tally.Answer()
}
