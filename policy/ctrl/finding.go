package ctrl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Finding is something in the bundle that cannot mean what its author hoped, or that means something else here.
type Finding struct {
	Code    string `json:"code"` // one of [Codes]
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in characters
	ID      string `json:"id"`     // of the policy, rule, variable or mode; empty for a file
	Key     string `json:"key"`    // deny, score_expr, args.NAME, …; empty for all of it
	Problem string `json:"problem"`
	Done    string `json:"done"` // what was made of it
}

// String returns the finding in one line.
func (f *Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s%s; %s", f.File, f.Line, f.Column, f.Code, f.where(), f.Problem, f.Done)
}

func (f *Finding) where() string {
	switch {
	case f.ID == "":
		return ""
	case f.Key == "":
		return fmt.Sprintf("%q: ", f.ID)
	}
	return fmt.Sprintf("%q, %s: ", f.ID, f.Key)
}

// The codes of findings.
const (
	ApprovalShadowed = "approval_shadowed"
	DenialShadowed   = "denial_shadowed"
	Unreachable      = "unreachable"
	CatchAllAllow    = "catch_all_allow"
	MoreRiskIsMilder = "more_risk_is_milder"
	NoEffect         = "no_effect"
	Split            = "split"
	Refused          = "refused"
	AlwaysFailed     = "always_failed"
	FailingVar       = "failing_var"
	ShadowedName     = "shadowed_name"
	WrongType        = "wrong_type"
	Division         = "division"
	Rounding         = "rounding"
	TextCase         = "text_case"
	Truth            = "truth"
	Contains         = "contains"
	MissingArgument  = "missing_argument"
	NullValue        = "null_value"
	ScoreOrder       = "score_order"
	Widened          = "widened"
	Ladder           = "ladder"
	IgnoredKey       = "ignored_key"
)

// A Code is a code with its meaning.
type Code struct{ Code, Meaning string }

// Codes returns every code that a [Finding] can have.
func Codes() []Code {
	return []Code{
		{ApprovalShadowed, "an approval that can never be asked for, because an earlier policy allows first"},
		{DenialShadowed, "a denial that can never happen, because an earlier policy allows first"},
		{Unreachable, "a policy that can never decide, because an earlier one matches whatever it matches"},
		{CatchAllAllow, "a policy that allows every call that its own conditions do not stop"},
		{MoreRiskIsMilder, "a condition that stops a call, and lets the same call through when its risk is higher"},
		{NoEffect, "a condition that cannot change the decision"},
		{Split, "a policy that became two, since here deny stands only beside effect: allow"},
		{Refused, "an expression that was not translated"},
		{AlwaysFailed, "an expression that ctrl can never evaluate, so that it never meant what it says"},
		{FailingVar, "a variable that ctrl makes 0 without a word where it fails"},
		{ShadowedName, "a name or function that, in ctrl, an argument of the same name takes the place of"},
		{WrongType, "an argument that counts as a number or text, and may be something else"},
		{Division, "a division: of whole numbers it drops the fraction in CEL, and not in Python"},
		{Rounding, "a function that rounds, or reads, some values differently here"},
		{TextCase, "a search in a text that upper case gets past"},
		{Truth, "a value that is taken for true or false"},
		{Contains, "a contains that, in ctrl, misses other cases and lists"},
		{MissingArgument, "a predicate that, in ctrl, an argument gets past that is missing or of another type"},
		{NullValue, "a predicate that compares with null"},
		{ScoreOrder, "a score that is computed after the rule's mode is set, and not before"},
		{Widened, "a glob with [ ], which is not there here"},
		{Ladder, "a mode or a threshold that was changed so that more risk is never milder"},
		{IgnoredKey, "a key that says nothing about risk or policy"},
	}
}

// A Fault is why a bundle cannot be read. Line and Column begin at 1; 0 is the file.
type Fault struct {
	File         string
	Line, Column int
	Problem      string
}

// Faults are all faults of a bundle.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.File + ": " + one.Problem
		if one.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", one.File, one.Line, one.Column, one.Problem)
		}
	}
	return strings.Join(lines, "\n")
}

func sortFindings(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
