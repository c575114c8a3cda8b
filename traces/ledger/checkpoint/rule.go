package checkpoint

import (
	"errors"
	"fmt"
)

// A Rule is the number of a rule in docs/reference/record-format.md.
type Rule string

// The rules of checkpoints and proofs. Package ledger has the others.
const (
	RuleInconsistent  Rule = "R39"
	ruleNote          Rule = "R40"
	ruleText          Rule = "R41"
	ruleSignatures    Rule = "R42"
	ruleSigned        Rule = "R43"
	ruleCosigned      Rule = "R44"
	ruleInclusion     Rule = "R45"
	ruleProofEntries  Rule = "R46"
	ruleProofRun      Rule = "R47"
	ruleProofRecorded Rule = "R48"
	ruleConsistency   Rule = "R49"
)

// A brokenRule is an error that names the rule that something breaks.
type brokenRule struct {
	error
	rule Rule
}

// Unwrap returns the error without the rule.
func (b *brokenRule) Unwrap() error { return b.error }

// Broken returns the error of something that breaks the rule. Its parameters are those of [fmt.Errorf].
func (r Rule) Broken(format string, args ...any) error { return r.Wrap(fmt.Errorf(format, args...)) }

// Wrap adds the rule to an error, which may be nil.
func (r Rule) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &brokenRule{err, r}
}

// RuleOf returns the rule that an error names; empty if it names none.
func RuleOf(err error) Rule {
	if broken := (*brokenRule)(nil); errors.As(err, &broken) {
		return broken.rule
	}
	return ""
}

// Cited returns where a rule is found; empty for no rule.
func (r Rule) Cited() string {
	if r == "" {
		return ""
	}
	return fmt.Sprintf(" (record-format.md, %s)", string(r))
}
