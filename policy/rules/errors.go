package rules

import (
	"fmt"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// An Error is one fault of one policy.
type Error struct {
	Index   int              // of the policy, from 0
	ID      string           // of the policy, as written
	Key     string           // as in policy.yaml: "id", "match.server", "when", …; "" is the policy itself
	Problem string           // what is wrong; for a condition what Cause says
	Remedy  string           // what to do; may be empty
	Cause   *condition.Error // where in the condition, if the fault is in a condition
}

// Error returns the place, the problem and the remedy in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %d", e.Index)
	if e.ID != "" {
		fmt.Fprintf(&b, " (id %q)", visible.Clip(e.ID, MaxID))
	}
	if e.Key != "" {
		b.WriteString(", " + e.Key)
	}
	b.WriteString(": ")
	if e.Cause != nil {
		b.WriteString(e.Cause.Error())
		return b.String()
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns the fault of the condition, if that is what is wrong.
func (e *Error) Unwrap() error {
	if e.Cause == nil {
		return nil // and not a nil *condition.Error in an error
	}
	return e.Cause
}

// Errors are all faults of a list of policies, in the order of the policies and of their keys.
type Errors []*Error

// Error returns one line for each fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}
