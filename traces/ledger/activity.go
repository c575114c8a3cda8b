package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Bounds of what [ReadActivity] reads: its cost does not grow with the number of runs.
const (
	MaxRecent  = 10_000 // runs that are counted
	MaxWaits   = 200    // held calls whose waits are measured
	MaxPending = 1_000  // held calls that wait now
)

// Activity summarizes the runs of a period.
type Activity struct {
	Since   string // when the period begins
	Now     string
	Unit    time.Duration // the width of the intervals in Counts
	Counts  []Count       // runs that were requested in the period, in order
	Partial bool          // the period has more runs: Counts has only the newest MaxRecent
	First   string        // when the first counted run was requested; empty without one
	Waits   Waits
	Active  *Activation // the last activation; nil if no gateway has started
}

// Waits holds how long approvers took to decide about the calls that were requested in a period.
type Waits struct {
	Decided     []time.Duration // how long each call waited that an approver decided, shortest first
	Expired     int             // held calls that nobody decided
	Partial     bool            // only the newest MaxWaits held calls of the period were read
	Pending     int             // calls that wait now, whenever they were requested
	MorePending bool            // more calls wait than were counted
	Oldest      string          // when the oldest waiting call was requested; empty if no call waits
}

// An Activation says that a gateway started with a bundle.
type Activation struct {
	Entry  int64            `json:"entry"`
	At     string           `json:"at"`
	By     string           `json:"by"` // the id of the gateway; its runs carry it
	Build  string           `json:"build"`
	Bundle canonical.Digest `json:"bundle"`
	Cause  Cause            `json:"-"`
}

// units lists the widths of the intervals in which runs are counted. A width is used for periods of
// at most most.
var units = []struct{ width, most time.Duration }{
	{10 * time.Minute, 3 * time.Hour}, {time.Hour, 49 * time.Hour}, {24 * time.Hour, 1 << 62},
}

// ReadActivity returns what happened since a time in the ledger's form.
func ReadActivity(r Reader, since, now string) (a Activity, err error) {
	start, err := time.Parse(timeForm, since)
	if err != nil {
		return a, err
	}
	end, err := time.Parse(timeForm, now)
	if err != nil {
		return a, err
	}

	a = Activity{Since: since, Now: now}
	for _, u := range units {
		if a.Unit = u.width; end.Sub(start) <= u.most {
			break
		}
	}

	if err := a.countRuns(r); err != nil {
		return a, err
	}
	if err := a.Waits.readHeldCalls(r, since, now); err != nil {
		return a, err
	}

	a.Active, err = LastActivation(r)
	return a, err
}

// countRuns counts the runs.
func (a *Activity) countRuns(r Reader) error {
	read, foundEarlier := 0, false
	for c, err := range r.Counts(MaxRecent, a.Since, a.Unit) {
		if err != nil {
			return err
		}
		if read += c.Runs; c.At == "" {
			foundEarlier = true
			continue
		}
		if a.First == "" || c.First < a.First {
			a.First = c.First
		}
		a.Counts = append(a.Counts, c)
	}
	// Run ids are ordered by time: if a run from before the period was read, all runs of the period
	// were read.
	a.Partial = read == MaxRecent && !foundEarlier
	return nil
}

// readHeldCalls measures the waits of held calls.
func (w *Waits) readHeldCalls(r Reader, since, now string) error {
	n := 0
	for q, err := range r.Runs(Filter{Held: true, Newest: true, Limit: MaxWaits + 1}) {
		if err != nil {
			return err
		}
		if q.At < since {
			break
		}
		if n++; n > MaxWaits {
			w.Partial = true
			break
		}
		if err := w.addWait(r, &q); err != nil {
			return err
		}
	}

	slices.Sort(w.Decided)

	// Calls that wait now are counted whenever they were requested.
	for q, err := range r.Runs(Filter{Statuses: []Status{Pending}, Limit: MaxPending + 1}) {
		switch {
		case err != nil:
			return err
		case w.Pending == MaxPending:
			w.MorePending = true
		// Otherwise it has expired, and no process has recorded that yet.
		case policy.IsBefore(now, q.Expires):
			if w.Pending++; w.Oldest == "" {
				w.Oldest = q.At
			}
		}
	}

	return nil
}

// addWait adds how long approvers took to decide about a held call, if they did.
func (w *Waits) addWait(r Reader, q *RunRow) error {
	switch q.Status {
	case Pending:
		return nil
	case Expired:
		w.Expired++
		return nil
	}

	askedAt, decidedAt := "", ""
	for e, err := range EventsOf(r, q.RunID) {
		switch {
		case err != nil:
			return err
		case e.Type == ApprovalRequested:
			askedAt = e.At
		// A withdrawal is also a denial.
		case (e.Type == ApprovalApproved || e.Type == ApprovalDenied) && e.By != q.Actor:
			decidedAt = e.At
		}
	}

	if askedAt == "" || decidedAt == "" {
		return nil
	}
	begun, err := time.Parse(timeForm, askedAt)
	if err != nil {
		return fmt.Errorf("run %s: %w", q.RunID, err)
	}

	ended, err := time.Parse(timeForm, decidedAt)
	if err != nil {
		return fmt.Errorf("run %s: %w", q.RunID, err)
	}

	w.Decided = append(w.Decided, ended.Sub(begun))
	return nil
}

// LastActivation returns the last start or reload of a gateway; nil if none has started.
func LastActivation(r Reader) (*Activation, error) {
	e, err := r.LastOfType(BundleActivated)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a, err := e.decodeActivation()
	return &a, err
}

// decodeActivation decodes an entry of the type [BundleActivated].
func (e *Entry) decodeActivation() (Activation, error) {
	single, err := e.singleEvent()
	if err != nil {
		return Activation{}, err
	}
	a := single.payload.(*bundleActivated)
	return Activation{
		Entry:  e.Index,
		At:     e.At,
		By:     single.event.By,
		Build:  a.Build,
		Bundle: a.Bundle,
		Cause:  a.Cause,
	}, nil
}
