package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Lengths of run ids (UUIDs). The first characters encode the time; people name a run by some of
// the last characters.
const (
	ShortRun    = 8 // characters that lists show
	minShortRun = 4 // the fewest characters that can name a run
)

// ShortID returns the end of a run id, as lists show it.
func ShortID(run string) string { return run[max(0, len(run)-ShortRun):] }

// FindRun returns the id of the run that a text names: by its whole id, or by the first four to
// eight of its last eight characters. It returns a text that names no run unchanged. The error is
// [ErrUnknown] if several runs match.
func FindRun(r Reader, text string) (string, error) {
	if len(text) < minShortRun || len(text) > ShortRun {
		return text, nil
	}
	var found []string
	for q, err := range r.Runs(Filter{Short: text, Newest: true, Limit: 2}) {
		if err != nil {
			return "", err
		}
		found = append(found, q.RunID)
	}
	switch len(found) {
	case 0:
		return text, nil
	case 1:
		return found[0], nil
	}
	return "", &Refusal{Code: RefusedUnknown,
		Message: fmt.Sprintf("%s is the end of several run ids, such as %s: give more characters, or the whole id",
			text, strings.Join(found, " and "))}
}

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Proposed, Pending, Approved, Allowed, Denied, Executed, Failed, Expired, Indeterminate, Delegated, Reported, Unreported}
}

// Choose sets the statuses and the times of a filter. It reads times as [ParsePast] does. No
// statuses, or an empty time, match every run.
func (f *Filter) Choose(statuses []string, since, until string, now time.Time) (err error) {
	for _, name := range statuses {
		if !slices.Contains(Statuses(), Status(name)) {
			names := strings.Trim(fmt.Sprint(Statuses()), "[]")
			return fmt.Errorf("status %q: give some of %s", name, strings.ReplaceAll(names, " ", ", "))
		}
		f.Statuses = append(f.Statuses, Status(name))
	}
	if since != "" {
		if f.Since, err = ParsePast(since, now); err != nil {
			return fmt.Errorf("since %w", err)
		}
	}
	if until != "" {
		if f.Until, err = ParsePast(until, now); err != nil {
			return fmt.Errorf("until %w", err)
		}
	}
	return nil
}

// ParseTime parses a time, or a date, which means midnight UTC. The result has the form of recorded
// times.
func ParseTime(s string) (string, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Format(timeForm), nil
		}
	}
	return "", fmt.Errorf("%q: give a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", s)
}

// ParsePast is [ParseTime], and also parses a duration before now.
func ParsePast(s string, now time.Time) (string, error) {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d).UTC().Format(timeForm), nil
	}
	text, err := ParseTime(s)
	if err != nil {
		err = fmt.Errorf("%w, or a duration such as 24h", err)
	}
	return text, err
}
