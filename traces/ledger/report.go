package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// ErrNotDelegated means that the run waits for no report: its permit was not handed out, or the client has
// reported.
var ErrNotDelegated = errors.New("the run waits for no report")

// Report records the client's report about a call that it made itself, or a [*states.ReportLapsed], and ends the
// run. It sets the time of the report. Of several callers, in any number of processes, one succeeds; the others
// get a [*ClaimError]. A report about a run that has ended as unreported becomes an entry of its own, in the name
// of by, and the run stays as it is.
func (l *Ledger) Report(ctx context.Context, p *traces.Replayer, run string, by Caller, report states.Event) (ended Resumed, err error) {
	if !l.beginWork(run) {
		return ended, fmt.Errorf("run %s: %w: this one, at this moment", run, ErrTaken)
	}
	defer l.endWork(run)

	var rec *Record
	err = l.View(ctx, func(r Reader) (err error) {
		if rec, err = Load(r, run); err != nil {
			return err
		}
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		setReportTime(report, now)
		if by.TokenID == "" {
			return nil
		}
		return by.recheckAction(r, now, ActTell)
	})
	switch {
	case err != nil:
		return ended, err
	case rec.Row.Status == Unreported:
		return ended, l.reportLate(ctx, &rec.Row, by, report)
	case rec.Row.State != states.Delegated:
		return ended, &ClaimError{Row: rec.Row, Err: ErrNotDelegated}
	}

	resumption, err := rec.reexecute(p)
	if err != nil {
		return ended, err
	}
	recorder := l.continueRecord(rec, resumption.Run, resumption)
	ctx = context.WithoutCancel(ctx)
	ended.Run = resumption.Run
	if ended.Outcome, err = resumption.Advance(ctx, &states.Live{Report: report}, recorder); err != nil {
		return ended, err
	}
	ended.Head, err = recorder.Finish(ctx, ended.Outcome)
	return ended, err
}

func setReportTime(report states.Event, now string) {
	switch e := report.(type) {
	case *states.CallReported:
		e.At = now
	case *states.ReportLapsed:
		e.At = now
	}
}

// reportLate records the first report about a run that has ended as unreported. A second lapse is nothing.
func (l *Ledger) reportLate(ctx context.Context, q *RunRow, by Caller, report states.Event) error {
	e, ok := report.(*states.CallReported)
	if !ok {
		return nil
	}
	return l.commit(ctx, func(b *batch) error {
		if err := by.recheckCalls(b, ActTell); err != nil {
			return err
		}
		for e, err := range b.EntriesOfType(ReportLate, q.First) {
			if err != nil {
				return err
			}
			single, err := e.singleEvent()
			if err != nil || single.payload.(*reportLate).Run == q.RunID {
				return err
			}
		}
		return b.addEvent(nil, "", by.Name, &reportLate{
			Args: e.Ran, Arguments: e.Arguments, Failed: e.Failed, Result: e.Result, Run: q.RunID, Token: by.TokenID,
		})
	})
}

// Lapse ends the runs whose permit was handed out longer ago than within allows for their tool, and about which the
// client has not reported.
func (l *Ledger) Lapse(ctx context.Context, p *traces.Replayer, within func(server, tool string) time.Duration) ([]Recovered, error) {
	return l.lapseRuns(ctx, p, Filter{}, within, func(q *RunRow) string {
		return fmt.Sprintf("The client did not report the call within %s.", within(q.Server, q.Tool))
	})
}

// LapseSession ends the runs of a client's session about which the client has not reported: the session is over.
// It returns how many these were.
func (l *Ledger) LapseSession(ctx context.Context, p *traces.Replayer, actor, session string) (lapsed int, err error) {
	ended, err := l.lapseRuns(ctx, p, Filter{Actor: actor, Session: session}, func(string, string) time.Duration { return 0 },
		func(*RunRow) string { return "The client's session ended without a report." })
	for _, one := range ended {
		if one.Err == nil {
			lapsed++
		}
		err = cmp.Or(err, one.Err)
	}
	return lapsed, err
}

// lapseRuns ends the runs of a filter that have waited for a report for the time of their tool.
func (l *Ledger) lapseRuns(ctx context.Context, p *traces.Replayer, f Filter, within func(server, tool string) time.Duration,
	reason func(*RunRow) string) (ended []Recovered, err error) {
	runs, err := l.delegatedRuns(ctx, f, within)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		run := runs[i].RunID
		one, err := l.Report(ctx, p, run, Caller{}, &states.ReportLapsed{Reason: reason(&runs[i])})
		if errors.Is(err, ErrTaken) || errors.Is(err, ErrNotDelegated) {
			continue // another process was faster
		}
		ended = append(ended, Recovered{run, one.Outcome, one.Head, err})
	}
	return ended, nil
}

// delegatedRuns returns the runs of a filter that have waited for a report for the time of their tool.
func (l *Ledger) delegatedRuns(ctx context.Context, f Filter, within func(server, tool string) time.Duration) (runs []RunRow, err error) {
	f.Statuses, f.Open = []Status{Delegated}, true
	err = l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		latest, err := time.Parse(timeForm, now)
		if err != nil {
			return err
		}
		runs = nil
		for q, err := range r.Runs(f) {
			if err != nil {
				return err
			}
			if !policy.IsBefore(latest.Add(-within(q.Server, q.Tool)).Format(timeForm), q.Sent) {
				runs = append(runs, q)
			}
		}
		return nil
	})
	return runs, err
}

// checkTold checks that who told a prompt or a report had a token of the role hook, or needs none.
func (v *verifier) checkTold(e *Event, token string) error {
	if token == "" && policy.HasNoToken(e.By) {
		return v.checkNotBlocked(e.Index, e.By)
	}
	return v.checkToken(token, e.By, ActTell, e)
}

// checkLate checks that a late report is the first one about a run that had ended as unreported. Of pruned runs, only
// how many ended so is known.
func (v *verifier) checkLate(e *Event, run string) error {
	if v.late[run] {
		return ruleLate.Broken("a second late report about the run %s", run)
	}
	v.late[run] = true
	q, err := v.r.Run(run)
	switch {
	case errors.Is(err, ErrNotFound) && v.prunedSilent > 0:
		v.prunedSilent--
	case errors.Is(err, ErrNotFound):
		return ruleLate.Broken("a late report about the run %s, which is not there", run)
	case err != nil:
		return err
	case q.Status != Unreported || q.Entry > e.Index:
		return ruleLate.Broken("a late report about the run %s, which had not ended as unreported", run)
	}
	return nil
}

// A SessionState is what is known about a client's session.
type SessionState struct {
	Prompt    int64 // index of the entry with the last prompt; 0: unknown
	Calls     int   // how many of the newest [MaxCounted] runs were permitted
	Rewritten bool  // a call ran with other arguments than the permitted ones
}

// ReadSession returns the state of a client's session; without calls, only its prompt. Calls that were denied are not among those that are
// counted, so no number of them hides others.
func (l *Ledger) ReadSession(ctx context.Context, actor, session string, calls bool) (state SessionState, err error) {
	err = l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		state = SessionState{}
		if calls {
			if state, err = readSession(r, actor, session); err != nil {
				return err
			}
		}
		var told toldPrompts
		_, err = readTold(r, toldSession, actor, session, now, &told)
		state.Prompt = told.Last
		return err
	})
	return state, err
}

func readSession(r Reader, actor, session string) (state SessionState, err error) {
	for _, err := range r.Runs(Filter{Actor: actor, Session: session, Code: string(policy.CodeRewritten), Limit: 1}) {
		if err != nil {
			return state, err
		}
		state.Rewritten = true
	}
	for q, err := range r.Runs(Filter{Actor: actor, Session: session, Statuses: sentStatuses}) {
		if err != nil {
			return state, err
		}
		if q.Sent != "" {
			state.Calls++
		}
		if state.Calls == MaxCounted {
			break
		}
	}
	return state, nil
}

// sentStatuses are those that a run may have whose call was sent or whose permit was handed out.
var sentStatuses = []Status{Allowed, Approved, Executed, Failed, Indeterminate, Delegated, Reported, Unreported}

// findDelegation returns the run of a request whose call the client makes itself: the one with the same id of
// the client's call, or a held one of the same session with the same call that was not handed out.
func (r *RunRecorder) findDelegation(look Reader) (run string, err error) {
	q := &r.header.Request
	if call := q.Session.CallID(); call != "" {
		for row, err := range look.Runs(Filter{Actor: q.Actor, Session: q.Session.Key(), ClientCall: call, Limit: 1}) {
			return row.RunID, err
		}
	}
	repeated, ok := r.repeatedCall()
	if !ok {
		return "", nil
	}
	repeated.Kind, repeated.Session = q.Kind, q.Session.Key()
	if run, err = look.FindWaiting(repeated); errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return run, err
}
