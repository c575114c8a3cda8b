package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/condition"
	"pgfsm/states"
)

// MaxCounted is how many calls are looked at for one answer about calls before. They are read in the transaction in which
// the run takes its place, so all other writers wait for it; where there are more, there is no answer.
const MaxCounted = 10_000

// maxSummand bounds the bytes of a number that is summed: a double written out in full has fewer.
const maxSummand = 400

// ReadHistory implements [states.Historian]. In one transaction it reads what was called before and records the run with
// its call, as one that others find from then on: of many runs that ask at the same time each finds those that asked before
// it. The place is free again when the run ends without having called, or is recovered.
func (r *Run) ReadHistory(ctx context.Context, wanted *states.ReadHistory) states.Event {
	var read *states.HistoryRead
	err := r.commit(ctx, func(b *batch, q *Request) (err error) {
		if read, err = r.history(b, wanted); err != nil {
			return err
		}
		return b.add(q, r.header.RunID, r.l.owner, &reserved{anchor: r.anchor()})
	})
	switch {
	case err == nil:
		return read
	case errors.Is(err, context.DeadlineExceeded):
		return states.Interruption(policy.CodeTimeout, "The run's time ran out while the calls before it were read.")
	case ctx.Err() != nil:
		return states.Interruption(policy.CodeCancelled, "The run was cancelled while the calls before it were read.")
	}
	return &states.EffectFailed{
		Code: policy.CodeRecordFailed, Effect: states.NotSent, Reason: "The calls before this one cannot be read: " + err.Error(),
	}
}

// history reads what is wanted. What cannot be answered for sure says why. The run is not among what it finds: its own row
// is put behind it.
func (r *Run) history(b Reader, wanted *states.ReadHistory) (*states.HistoryRead, error) {
	read := &states.HistoryRead{Calls: []policy.TaskCalls{}, Values: make([]policy.HistoryAnswer, len(wanted.Queries))}
	gone, err := r.l.lastPrune(b)
	if err != nil {
		return nil, err
	}
	if task, v := r.header.Request.Task, r.run.Facts().Validated; wanted.Task && task != nil && v != nil {
		if read.Calls, err = taskCalls(b, gone, taskCall{Server: v.Server, Task: task.ID, Tool: v.Tool}); err != nil {
			return nil, err
		}
	}
	for i, query := range wanted.Queries {
		if read.Values[i], err = r.answer(b, gone, query); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// answer answers one query: about the calls that may yet be made, whenever they were asked for, and those that were made
// and were asked for or sent since the beginning of the window.
func (r *Run) answer(b Reader, gone pruned, query policy.HistoryQuery) (policy.HistoryAnswer, error) {
	f, why := r.window(query)
	if why == "" && gone.Before > f.Since { // what was removed had ended before, so it was sent before
		why = "what was before " + gone.Before + " was pruned, and the window begins at " + f.Since
	}
	if why != "" {
		return query.Fail(why), nil
	}
	n, sum := 0, new(big.Rat)
	for q, err := range b.Requests(f) {
		switch {
		case err != nil:
			return policy.HistoryAnswer{}, err
		case q.Tool == "":
			continue
		}
		if n++; n > MaxCounted {
			return query.Fail(fmt.Sprintf("there are more than %d calls in the window", MaxCounted)), nil
		}
		if query.Of != condition.QuerySum {
			continue
		}
		args, err := q.Call(b)
		if err != nil {
			return policy.HistoryAnswer{}, err
		}
		if err := addTo(sum, args, query.Path); err != nil {
			return query.Fail(fmt.Sprintf("run %s: %v", q.RunID, err)), nil
		}
	}
	if query.Of != condition.QuerySum {
		return query.Answer(strconv.Itoa(n)), nil
	}
	digits, _ := sum.FloatPrec() // exact: each summand is a decimal
	return query.Answer(sum.FloatString(digits)), nil
}

// window is which requests a query is about. Whoever is not known has called nothing that could be found: that is no zero.
func (r *Run) window(query policy.HistoryQuery) (f Filter, why string) {
	asked, v := &r.header.Request, r.run.Facts().Validated
	if err := query.Check(); err != nil {
		return f, err.Error()
	}
	at, err := time.Parse(timeForm, asked.At)
	if err != nil || at.Format(timeForm) != asked.At {
		return f, fmt.Sprintf("the time of the request is not of the form %s", timeForm)
	}
	f = Filter{Counted: true, Since: at.Add(-time.Duration(query.Window) * time.Second).Format(timeForm)}
	if query.Of != condition.QueryCountAll {
		if v == nil {
			return f, "there is no call yet"
		}
		f.Server, f.Tool = v.Server, v.Tool
	}
	switch query.Scope {
	case condition.ScopeActor:
		if f.Actor = asked.Actor; f.Actor == "" {
			return f, "nobody is known to ask"
		}
	default:
		if asked.Task == nil || asked.Task.ID == "" {
			return f, "the run belongs to no task; name one with --task"
		}
		f.Task = asked.Task.ID
	}
	return f, ""
}

// addTo adds the number that stands at a place of arguments.
func addTo(sum *big.Rat, args jsontext.Value, path string) error {
	value := args
	for name := range strings.SplitSeq(path, ".") {
		var next jsontext.Value
		for member, v := range canonical.Members(value) {
			if member == name {
				next = v
			}
		}
		if next == nil {
			return fmt.Errorf("its arguments have no %q", path)
		}
		value = next
	}
	literal := string(value)
	if value.Kind() != '0' {
		return fmt.Errorf("its argument %q is no number", path)
	}
	if len(literal) > maxSummand {
		return fmt.Errorf("its argument %q has more than %d digits", path, maxSummand)
	}
	// Exponents that double does not have are refused before they are written out.
	if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) || f == 0 && strings.ContainsAny(mantissa(literal), "123456789") {
		return fmt.Errorf("its argument %q is a number that double does not hold", path)
	}
	n, ok := new(big.Rat).SetString(literal)
	if !ok {
		return fmt.Errorf("its argument %q is no number", path)
	}
	sum.Add(sum, n)
	return nil
}

func mantissa(literal string) string {
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		return literal[:i]
	}
	return literal
}
