package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Proposed, Pending, Approved, Allowed, Denied, Executed, Failed, Expired, Indeterminate}
}

// Choose sets the statuses, and the times since and until which to choose. An empty list or text chooses any.
func (f *Filter) Choose(statuses []string, since, until string) (err error) {
	for _, name := range statuses {
		if !slices.Contains(Statuses(), Status(name)) {
			known := strings.Trim(fmt.Sprint(Statuses()), "[]")
			return fmt.Errorf("status %q: give some of %s", name, strings.ReplaceAll(known, " ", ", "))
		}
		f.Statuses = append(f.Statuses, Status(name))
	}
	if since != "" {
		if f.Since, err = ParseTime(since); err != nil {
			return fmt.Errorf("since %w", err)
		}
	}
	if until != "" {
		if f.Until, err = ParseTime(until); err != nil {
			return fmt.Errorf("until %w", err)
		}
	}
	return nil
}

// ParseTime reads a date, which is its midnight in UTC, or a time. The result has the form of recorded times.
func ParseTime(s string) (string, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Format(timeForm), nil
		}
	}
	return "", fmt.Errorf("%q: give a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", s)
}
