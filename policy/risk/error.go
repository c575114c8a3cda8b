package risk

import (
	"fmt"

	"pgfsm/internal/visible"
)

// Error is one thing that is wrong with a [Content]. Where an expression is wrong, a [condition.Error] is inside.
type Error struct {
	List  string // the key of the list or value at the top level: modes, initial, vars, rules or set_mode_by_score
	Index int    // within the list, from 0; -1 if it is the list itself
	ID    string // of the rule, the variable or the mode; may be empty
	Key   string // within the element: score_expr, args[2].value; may be empty
	Err   error
}

// Error names the place, then what is wrong.
func (e *Error) Error() string {
	where := e.List
	if e.Index >= 0 {
		where = fmt.Sprintf("%s[%d]", where, e.Index)
	}
	if e.ID != "" {
		where += fmt.Sprintf(" (%q)", clip(e.ID))
	}
	if e.Key != "" {
		where += ", " + e.Key
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns what is wrong, without the place.
func (e *Error) Unwrap() error { return e.Err }

// clip keeps quoted text short enough for a sentence.
func clip(s string) string {
	const most = 80
	return visible.Cut(s, most, "…")
}
