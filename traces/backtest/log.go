package backtest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"pgfsm/internal/config"
	"pgfsm/policy/rules"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A Bound limits a comparison on a log. A comparison takes seconds, because it executes each call
// again.
type Bound struct {
	Calls int           // maximum number of compared calls
	Time  time.Duration // no call is begun after it
}

// Bounds of comparisons.
var (
	ForDraft  = Bound{Calls: 500, Time: 10 * time.Second} // for a draft policy in the console
	ForReload = Bound{Calls: 100, Time: 2 * time.Second}  // for the bundle that a reload has activated
)

// maxRead is the number of runs that are read for each compared call: some runs end before the
// policy gate.
const maxRead = 10

// ReadDraft reads the text of a policy.yaml, whose conditions may read the given claims. The error
// is of type [config.Errors].
func ReadDraft(text string, claims ...string) (*rules.Content, error) {
	p, _, err := config.ReadPolicy("draft", []byte(text), claims...)
	return p, err
}

// A LogReport is a comparison on the newest calls of a log.
type LogReport struct {
	*Report
	Since   string // when the oldest of the calls was requested; empty without calls
	Partial bool   // the period has more calls than were compared
}

// CompareLog compares the newest calls of a log that were requested since a time; an empty since is
// any time. It leaves out calls that have neither ended nor are held.
func (c *Comparer) CompareLog(ctx context.Context, v ledger.Viewer, since string, bound Bound) (r LogReport, err error) {
	var rated []ledger.RunRow
	err = v.View(ctx, func(reader ledger.Reader) (err error) {
		rated, r.Partial, err = newestRated(reader, since, bound.Calls)
		return err
	})
	if err != nil {
		return r, err
	}

	end := time.Now().Add(bound.Time)
	var calls []Call
	for i := range rated {
		if time.Now().After(end) {
			r.Partial = true
			break
		}
		call, ok, err := c.compareRun(ctx, v, rated[i].RunID)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return r, err
		}
		if ok {
			calls, r.Since = append(calls, call), rated[i].At
		}
	}
	r.Report = NewReport(calls)
	return r, nil
}

// newestRated returns the newest runs since a time that reached the policy gate. more reports that
// there may be others.
func newestRated(reader ledger.Reader, since string, limit int) (rated []ledger.RunRow, more bool, err error) {
	count := 0
	for q, err := range reader.Runs(ledger.Filter{Newest: true, Limit: maxRead*limit + 1}) {
		if err != nil {
			return nil, false, err
		}
		if q.At < since { // run ids are ordered by time
			break
		}
		if count++; count > maxRead*limit || len(rated) == limit {
			return rated, true, nil
		}
		if q.Mode != "" {
			rated = append(rated, q)
		}
	}
	return rated, false, nil
}

// compareRun compares one run; ok is false if the run has no trace yet. It reads the run in a
// transaction of its own, because a long transaction would keep a connection from the gateway.
func (c *Comparer) compareRun(ctx context.Context, v ledger.Viewer, run string) (call Call, ok bool, err error) {
	var doc []byte
	var unusable error
	err = v.View(ctx, func(reader ledger.Reader) error {
		doc, unusable = ledger.Trace(ctx, reader, run, c.Replayer)
		if errors.Is(unusable, ledger.ErrUnavailable) {
			return unusable
		}
		return nil
	})
	if err != nil || errors.Is(unusable, ledger.ErrUnfinished) || errors.Is(unusable, ledger.ErrNotFound) {
		return call, false, err
	}

	var t *traces.Trace
	if unusable == nil {
		t, unusable = traces.Read(doc)
	}
	call = c.Compare("", t, unusable)
	call.Path, call.RunID = run, run
	return call, true, nil
}
