package fsm

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoTransition means that the table has no row for this state and trigger, or does not know one
// of them.
var ErrNoTransition = errors.New("the table has no such transition")

// ErrGuard means that a row exists and its guard refused it.
var ErrGuard = errors.New("a guard refused the transition")

// TransitionError is a refusal by the machine. errors.Is finds [ErrGuard] or [ErrNoTransition] in
// it; errors.As finds the error that the guard gave.
type TransitionError struct {
	State   State
	Trigger Trigger
	// Guard is the name of the guard that refused; empty if there is no such row.
	Guard string
	// Reason is the guard's error, or wraps ErrNoTransition.
	Reason error
	// Trail is the way so far, for the message; the caller of [Machine.Fire] sets it.
	Trail []State
}

// Error gives one line for people.
func (e *TransitionError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fsm: %q refused in state %q", string(e.Trigger), string(e.State))
	if e.Guard != "" {
		fmt.Fprintf(&b, " by guard %q", e.Guard)
	}
	fmt.Fprintf(&b, ": %v", e.Reason)
	if len(e.Trail) > 1 {
		fmt.Fprintf(&b, " (trail: %s)", list(e.Trail))
	}
	return b.String()
}

// Unwrap gives the reason.
func (e *TransitionError) Unwrap() error { return e.Reason }

// Is reports whether target is ErrGuard and a guard refused.
func (e *TransitionError) Is(target error) bool { return target == ErrGuard && e.Guard != "" }

// Mistake is one thing that is wrong with a table.
type Mistake struct {
	Table string
	// Rule is the id of the proof that failed, or "allow" for a guard without a function.
	Rule string
	// Text names the place, row or claim.
	Text string
}

func (m *Mistake) Error() string {
	return fmt.Sprintf("fsm: table %q: %s: %s", m.Table, m.Rule, m.Text)
}

// list joins states or triggers for people.
func list[T ~string](items []T) string {
	names := make([]string, len(items))
	for i, one := range items {
		names[i] = string(one)
	}
	return strings.Join(names, ", ")
}
