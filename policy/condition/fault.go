package condition

import (
	"errors"
	"fmt"
	"strings"

	"pgfsm/internal/visible"
)

// A Fault is one thing that is wrong with risk rules or policies.
type Fault struct {
	// The key of the list or value at the top level: policies, modes, initial, vars, rules or
	// set_mode_by_score.
	List    string
	Index   int    // within the list, from 0; -1 if it is the list itself
	ID      string // the id or name of the policy, rule, variable or mode; may be empty
	Key     string // within the element: score_expr, args[2].value; may be empty
	Problem string // a sentence; for an expression, Cause's
	Remedy  string // may be empty
	Cause   *Error // the place in the expression, if the fault is in one
}

// NewFault returns a fault with the problem of an error, which may be an [*Error].
func NewFault(list string, index int, id, key string, err error) *Fault {
	f := &Fault{List: list, Index: index, ID: id, Key: key, Problem: err.Error()}
	if errors.As(err, &f.Cause) {
		f.Problem, f.Remedy = f.Cause.Problem, f.Cause.Remedy
	}
	return f
}

// Error returns the place, the problem and the remedy in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.List)
	if f.Index >= 0 {
		fmt.Fprintf(&b, "[%d]", f.Index)
	}
	if f.ID != "" {
		fmt.Fprintf(&b, " (%q)", visible.Cut(f.ID, 80, "…"))
	}
	if f.Key != "" {
		b.WriteString(", " + f.Key)
	}
	switch {
	case f.Cause != nil:
		b.WriteString(": " + f.Cause.Error())
	case f.Remedy != "":
		b.WriteString(": " + f.Problem + "; " + f.Remedy)
	default:
		b.WriteString(": " + f.Problem)
	}
	return b.String()
}

// Faults holds all faults of a file, in the order of its parts. It is an error.
type Faults []*Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}
