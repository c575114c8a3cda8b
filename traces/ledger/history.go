package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/states"
)

// MaxCounted bounds how many earlier calls are read for one answer. They are read in the
// transaction that reserves the run's place, and all other writers wait for that transaction. If
// there are more calls, there is no answer.
const MaxCounted = 10_000

// ReadHistory implements [states.Historian]. One transaction reads the earlier calls and records
// the run with its call, so that later runs find it. Of several concurrent runs, each finds those
// that were recorded before it. The reservation ends when the run ends without a call, or is
// recovered.
func (r *RunRecorder) ReadHistory(ctx context.Context, query *states.ReadHistory) states.Event {
	var answer *states.HistoryRead
	var err error
	if query.Origins {
		err = r.rememberEarlier(ctx)
	}
	if err == nil {
		err = r.commitSteps(ctx, func(b *batch, q *RunRow) (err error) {
			if answer, err = r.answerQueries(b, query); err != nil {
				return err
			}
			return r.addEvents(b, q, &callReserved{record: r.pending})
		})
	}
	switch {
	case err == nil:
		return answer
	case errors.Is(err, context.DeadlineExceeded):
		return states.Interruption(policy.CodeTimeout, "The run's time ran out while pgfsm read the earlier calls.")
	case ctx.Err() != nil:
		return states.Interruption(policy.CodeCancelled, "The run was cancelled while pgfsm read the earlier calls.")
	}
	return &states.EffectFailed{
		Code: policy.CodeRecordFailed, Effect: states.NotSent,
		Reason: "pgfsm cannot read the earlier calls: " + err.Error(),
	}
}

// answerQueries answers the queries without counting the run itself.
func (r *RunRecorder) answerQueries(b Reader, wanted *states.ReadHistory) (*states.HistoryRead, error) {
	p := callHistory{request: &r.header.Request}
	if v := r.run.Facts().Validated; v != nil {
		p.server, p.tool = v.Server, v.Tool
	}
	var err error
	if p.lastPrune, err = r.ledger.lastPrune(b); err != nil {
		return nil, err
	}
	read, err := p.answerAll(b, wanted)
	if err == nil && wanted.Origins {
		read.Origins, err = findOrigins(b, r.run, now, func(k lookback) (*earlierCalls, error) {
			return r.earlier[k].calls.Load().extend(b, p.lastPrune.entry, false, true)
		})
	}
	return read, err
}

// ReadEarlierCalls returns what [RunRecorder.ReadHistory] would return for a call that is not made.
// It records nothing. A nil Viewer stands for a ledger without calls.
func ReadEarlierCalls(ctx context.Context, v Viewer, r *states.Request, server, tool string,
	wanted *states.ReadHistory) (read *states.HistoryRead, err error) {
	p := callHistory{request: r, server: server, tool: tool}
	if v == nil {
		return p.answerAll(emptyReader{}, wanted)
	}
	err = v.View(ctx, func(b Reader) (err error) {
		if p.lastPrune, err = new(Ledger).lastPrune(b); err != nil {
			return err
		}
		read, err = p.answerAll(b, wanted)
		return err
	})
	return read, err
}

// emptyReader is the Reader of a ledger without calls.
type emptyReader struct{ Reader }

func (emptyReader) Runs(Filter) iter.Seq2[RunRow, error] {
	return func(func(RunRow, error) bool) {}
}

// A callHistory answers queries about the calls before one call.
type callHistory struct {
	request      *states.Request
	server, tool string // empty if there is no call yet
	lastPrune    knownPrune
}

// answerAll answers all queries. A query without a certain answer gets a reason.
func (p *callHistory) answerAll(b Reader, wanted *states.ReadHistory) (read *states.HistoryRead, err error) {
	read = &states.HistoryRead{Calls: []policy.TaskCalls{}, Values: make([]policy.HistoryAnswer, len(wanted.Queries))}
	if task := p.request.Task; wanted.Task && task != "" && p.tool != "" {
		if read.Calls, err = taskCalls(b, p.lastPrune.tasks,
			taskCall{Server: p.server, Task: task, Tool: p.tool}); err != nil {
			return nil, err
		}
	}
	for i, query := range wanted.Queries {
		if read.Values[i], err = p.answerQuery(b, query); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// answerQuery answers one query. It counts calls that may yet be made, whenever they were
// requested. It also counts calls that were made, if they were requested or sent since the
// beginning of the window.
func (p *callHistory) answerQuery(b Reader, query policy.HistoryQuery) (policy.HistoryAnswer, error) {
	f, reason := p.windowFilter(query)
	// Pruned runs had ended by then, so their calls were sent before.
	if reason == "" && p.lastPrune.before > f.Since {
		reason = "what was before " + p.lastPrune.before + " was pruned, and the window begins at " + f.Since
	}

	if reason != "" {
		return query.Fail(reason), nil
	}

	tally := query.Tally()
	for q, err := range b.Runs(f) {
		switch {
		case err != nil:
			return policy.HistoryAnswer{}, err
		case q.Tool == "":
			continue
		case tally.Calls() == MaxCounted:
			return query.Fail(fmt.Sprintf("there are more than %d calls in the window", MaxCounted)), nil
		}
		var args jsontext.Value
		if query.Of == condition.QuerySum {
			if args, err = q.ReadArgs(b); err != nil {
				return policy.HistoryAnswer{}, err
			}
		}
		if err := tally.Add(args); err != nil {
			return query.Fail(fmt.Sprintf("run %s: %v", q.RunID, err)), nil
		}
	}
	return tally.Answer(), nil
}

// windowFilter returns the filter of a query. A query about an unknown actor or task has no answer,
// which differs from zero.
func (p *callHistory) windowFilter(query policy.HistoryQuery) (f Filter, reason string) {
	request := p.request
	if err := query.Check(); err != nil {
		return f, err.Error()
	}
	requestedAt, err := time.Parse(timeForm, request.At)
	if err != nil || requestedAt.Format(timeForm) != request.At {
		return f, fmt.Sprintf("the time of the request is not of the form %s", timeForm)
	}

	f = Filter{Counted: true, Since: requestedAt.Add(-time.Duration(query.Window) * time.Second).Format(timeForm)}
	if query.Of != condition.QueryCountAll {
		if p.tool == "" {
			return f, "there is no call yet"
		}
		f.Server, f.Tool = p.server, p.tool
	}

	switch query.Scope {
	case condition.ScopeActor:
		if f.Actor = request.Actor; f.Actor == "" {
			return f, "the requester is unknown"
		}
	default:
		if request.Task == "" {
			return f, "the run belongs to no task; name one with --task"
		}
		f.Task = request.Task
	}

	return f, ""
}
