package present

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A Summary describes the activity on a ledger in a period. Every member is always present.
type Summary struct {
	SchemaVersion int    `json:"schema_version"`
	Since         string `json:"since"`
	Until         string `json:"until"`
	Runs          int    `json:"runs"` // counted runs that were requested in the period
	// The period has more runs: only the newest were counted.
	Partial bool `json:"partial"`
	// Time of the first counted run's request; empty without one.
	First     string             `json:"first"`
	Unit      int                `json:"unit_seconds"` // unit of the time counts
	Statuses  []StatusCount      `json:"statuses"`     // in the order of [ledger.Statuses]
	Times     []TimeCount        `json:"times"`        // oldest first
	Refusals  []Refusal          `json:"refusals"`     // the most frequent first
	Approvals Waits              `json:"approvals"`
	Active    *ledger.Activation `json:"active"` // null if no gateway has started
}

// A StatusCount is the number of runs with a status.
type StatusCount struct {
	Status ledger.Status `json:"status"`
	Runs   int           `json:"runs"`
}

// A TimeCount has the numbers of runs by status that were requested in one unit of time.
type TimeCount struct {
	At string `json:"at"` // start of the unit
	StatusCount
}

// A Refusal is the number of runs that ended with a code.
type Refusal struct {
	Code   string `json:"code"`
	Runs   int    `json:"runs"`
	Remedy string `json:"remedy"` // the code's remedy
}

// Waits describes how long approvers took.
type Waits struct {
	Decided     int    `json:"decided"` // number of held calls that approvers decided
	Expired     int    `json:"expired"` // number of held calls that nobody decided
	Partial     bool   `json:"partial"` // the period has more held calls; only the newest were read
	Median      int    `json:"median_seconds"`
	Longest     int    `json:"longest_seconds"`
	Pending     int    `json:"pending"`      // calls that wait now
	MorePending bool   `json:"more_pending"` // more calls wait than were counted
	Oldest      string `json:"oldest"`       // time of the oldest waiting call's request; empty without one
}

// DefaultPeriod is the default period of a summary, in the form of [ledger.ParsePast].
const DefaultPeriod = "24h"

// NewSummary returns the summary of a ledger's activity.
func NewSummary(a *ledger.Activity) Summary {
	s := Summary{
		SchemaVersion: SchemaVersion,
		Since:         a.Since,
		Until:         a.Now,
		Partial:       a.Partial,
		First:         a.First,
		Unit:          int(a.Unit / time.Second),
		Statuses:      []StatusCount{},
		Times:         []TimeCount{},
		Refusals:      []Refusal{},
		Approvals:     newWaits(&a.Waits),
		Active:        a.Active,
	}

	statuses, codes := make(map[ledger.Status]int), make(map[string]int)
	for _, c := range a.Counts {
		s.Runs += c.Runs
		statuses[c.Status] += c.Runs
		if c.Code != "" && (Refused(c.Status) || c.Status == ledger.Reported) {
			codes[c.Code] += c.Runs
		}
		hour := c.At
		if n := len(s.Times); n > 0 && s.Times[n-1].At == hour && s.Times[n-1].Status == c.Status {
			s.Times[n-1].Runs += c.Runs
		} else {
			s.Times = append(s.Times, TimeCount{hour, StatusCount{c.Status, c.Runs}})
		}
	}

	for _, status := range ledger.Statuses() {
		if n := statuses[status]; n > 0 {
			s.Statuses = append(s.Statuses, StatusCount{status, n})
		}
	}

	for code, n := range codes { // in any order: sorted below
		s.Refusals = append(s.Refusals, Refusal{code, n, policy.Remedy(policy.Code(code))})
	}

	slices.SortFunc(s.Refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Code, b.Code))
	})
	return s
}

// Refused reports whether a run with a status was refused or failed.
func Refused(s ledger.Status) bool {
	return s == ledger.Denied || s == ledger.Failed || s == ledger.Expired || s == ledger.Indeterminate || s == ledger.Unreported
}

func newWaits(w *ledger.Waits) Waits {
	out := Waits{
		Decided:     len(w.Decided),
		Expired:     w.Expired,
		Partial:     w.Partial,
		Pending:     w.Pending,
		MorePending: w.MorePending,
		Oldest:      w.Oldest,
	}
	if n := len(w.Decided); n > 0 {
		out.Median, out.Longest = int(w.Decided[(n-1)/2]/time.Second), int(w.Decided[n-1]/time.Second)
	}
	return out
}

// Counted describes the counted runs.
func (s *Summary) Counted() string {
	if s.Partial {
		return fmt.Sprintf("the last %d of the period, requested since %s; the period has more", s.Runs, s.First)
	}
	return fmt.Sprintf("%d requested since %s", s.Runs, s.Since)
}

// Rows describes the waits for people.
func (w *Waits) Rows() []Row {
	decided, pending := fmt.Sprint(w.Decided), fmt.Sprint(w.Pending)
	if w.Partial {
		decided = fmt.Sprintf("%d of the last %d held calls of the period; the period has more", w.Decided,
			ledger.MaxWaits)
	}
	if w.MorePending {
		pending = fmt.Sprintf("more than %d", w.Pending)
	}
	if w.Oldest != "" {
		pending += ", the oldest requested " + w.Oldest
	}
	median, longest := "", ""
	if w.Decided > 0 {
		median, longest = Duration(w.Median), Duration(w.Longest)
	}
	return filledRows([]Row{
		{"Waiting now", pending}, {"Decided", decided}, {"Median wait", median}, {"Longest wait", longest},
		{"Expired", fmt.Sprint(w.Expired)},
	})
}

// ActiveRows describes the last activation for people. Without one, there are no rows.
func (s *Summary) ActiveRows() []Row {
	a := s.Active
	if a == nil {
		return nil
	}
	return filledRows([]Row{
		{"Bundle", string(a.Bundle)}, {"Activated", a.At}, {"By gateway", a.By}, {"Build", a.Build},
		{"Entry", fmt.Sprint(a.Entry)},
	})
}

// ReplicaRows describes the processes of a ledger for people, without the replicas themselves.
func ReplicaRows(p *ledger.Replicas) []Row {
	checkpoint := ""
	if p.Checkpoint > 0 {
		checkpoint = fmt.Sprintf("covers the first %d entries", p.Checkpoint)
	}
	return filledRows([]Row{
		{"Log", p.Origin},
		{"Entries", fmt.Sprintf("%d, the last of %s", p.Entries, p.At)},
		{"Checkpoint", checkpoint},
		{"Held calls", fmt.Sprintf("%d, waiting for approvers or for a replica", p.Waiting)},
		{"Other runs", fmt.Sprintf("%d, under way in processes that do not serve agents", p.Others)},
		{"Orphans", fmt.Sprintf("%d, runs whose process is gone; the next sweep of a replica ends them", p.Left)},
	})
}

// Duration writes whole seconds for people.
func Duration(seconds int) string {
	switch d := time.Duration(seconds) * time.Second; {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", seconds)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
