package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

	"pgfsm/internal/visible"
)

// An Error is the reason why an expression was refused when it was compiled. Line and Column begin
// at 1, count within the expression, and Column counts characters.
type Error struct {
	Line, Column    int
	Problem, Remedy string
}

// Error returns place, problem and remedy in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// errorAt returns an Error at a place as CEL counts it: lines from 1, columns from 0, either
// negative for nowhere.
func errorAt(place common.Location, problem, remedy string) *Error {
	e := &Error{Line: 1, Column: 1, Problem: visible.Clip(problem, maxMessage), Remedy: remedy}
	if place != nil && place.Line() > 0 {
		e.Line, e.Column = place.Line(), max(place.Column(), 0)+1
	}
	return e
}

// undeclaredClaim begins what CEL says of a claim that is not configured.
const undeclaredClaim = "undeclared reference to 'actor.claims"

// firstIssue returns the first thing that CEL found wrong, by place.
func (e *Env) firstIssue(issues *cel.Issues) *Error {
	found := issues.Errors()
	least := found[0]
	for _, one := range found[1:] {
		a, b := one.Location, least.Location
		if a.Line() < b.Line() || a.Line() == b.Line() && a.Column() < b.Column() {
			least = one
		}
	}
	problem, _, _ := strings.Cut(least.Message, ". Expected")
	// CEL's guess is another name of the language, which is no claim.
	if strings.HasPrefix(problem, undeclaredClaim) {
		problem, _, _ = strings.Cut(problem, " (did you mean")
	}
	return errorAt(least.Location, problem, e.remedyFor(problem))
}

// remedyFor returns the remedy for an error message of CEL.
func (e *Env) remedyFor(problem string) string {
	switch {
	case strings.HasPrefix(problem, undeclaredClaim) && len(e.claims) == 0:
		return "the configuration names no claims: add it to claims of an issuer"
	case strings.HasPrefix(problem, undeclaredClaim):
		return "the configured claims are " + strings.Join(e.claims, ", ")
	case strings.HasPrefix(problem, "undeclared reference") && e.where == inItem:
		return "trusted_if reads item and the names of the actor"
	case strings.HasPrefix(problem, "undeclared reference") && !strings.Contains(problem, "did you mean"):
		return "arguments are written args.NAME, text in quotes"
	case strings.Contains(problem, "'(int, double)'"), strings.Contains(problem, "'(double, int)'"):
		return "== and != do not compare int with double: write risk.score == 50"
	case strings.HasPrefix(problem, "found no matching overload"):
		return "these types do not go together here"
	case strings.HasPrefix(problem, "Syntax error"), strings.HasPrefix(problem, "syntax error"):
		return "conditions are CEL: == != < > && || ! in, text in quotes"
	}
	return ""
}

// maxMessage bounds a message, in bytes.
const maxMessage = 300
