package world

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/mcp/wire"
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
		runs := make([]int64, len(w.Session.Results))
		for i := range runs {
			runs[i] = w.Session.Results[i].Call
		}
		read.Origins = w.run.FindOrigins(w.Session, runs, false)
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
	n, sum := 0, new(big.Rat)
	for _, t := range before {
		if q.Of != condition.QueryCountAll && (t.Server != plan.Server || t.Tool != plan.Tool) {
			continue
		}
		n++
		if q.Of != condition.QuerySum {
			continue
		}
		x, ok := numberAt(t.Args, q.Path)
		if !ok {
			return q.Fail("a call before has no number there")
		}
		sum.Add(sum, x)
	}
	if q.Of != condition.QuerySum {
		return q.Answer(strconv.Itoa(n))
	}
	digits, _ := sum.FloatPrec() // exact: each summand is a decimal
	return q.Answer(sum.FloatString(digits))
}

// maxSummand bounds the bytes of a number that is summed: a double written out in full has fewer.
const maxSummand = 400

// numberAt returns the number at a place of canonical arguments, written with dots between names.
func numberAt(args jsontext.Value, path string) (*big.Rat, bool) {
	value := args
	for name := range strings.SplitSeq(path, ".") {
		value = wire.Member(value, name)
	}
	if value.Kind() != '0' || len(value) > maxSummand || strings.ContainsAny(string(value), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(value))
}
