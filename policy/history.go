package policy

import (
	"bytes"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
)

// A HistoryQuery asks about earlier calls; a HistoryAnswer answers it.
type (
	HistoryQuery  = condition.Query
	HistoryAnswer = condition.Answer
)

// Queries returns the queries of risk rules and policies for a call to a tool, in order and each
// once.
func (b *Bundle) Queries(server, tool string) []HistoryQuery {
	if b.decider != nil {
		return nil
	}
	env := b.content.Env
	return condition.Distinct(append(b.risk.Programs().Queries(server, tool, env),
		b.rules.Programs().Queries(server, tool, env)...))
}

// Counts reports whether a grant counts the calls to a tool.
func (b *Bundle) Counts(server, tool string) bool {
	for _, g := range b.grants {
		if t := g.tools[toolKey{server, tool}]; t != nil && t.calls > 0 {
			return true
		}
	}
	return false
}

// ReadsSession reports whether risk rules or policies read the session in which a call was requested.
func (b *Bundle) ReadsSession() bool {
	return b.decider == nil && (b.risk.Programs().ReadsSession() || b.rules.Programs().ReadsSession())
}

// ReadsOrigins reports whether risk rules or policies read where the arguments of a call come from.
func (b *Bundle) ReadsOrigins() bool {
	return b.decider == nil && (b.risk.Programs().ReadsOrigins() || b.rules.Programs().ReadsOrigins())
}

// SameLabels reports whether two bundles find the same origins of arguments.
func (b *Bundle) SameLabels(other *Bundle) bool {
	return bytes.Equal(canonical.MustMarshal(b.content.Labels), canonical.MustMarshal(other.content.Labels))
}

// checkQueries bounds the queries of all rules and policies together, because the globs may match
// one call with all of them.
func (b *Bundle) checkQueries() error {
	var queries []condition.Query
	for _, one := range append(b.risk.Programs().Asking(), b.rules.Programs().Asking()...) {
		queries = append(queries, one.Program.Queries()...)
	}
	if n := len(condition.Distinct(queries)); n > condition.MaxQueries {
		return fmt.Errorf("risk rules and policies ask %d different things of history; at most %d are answered: use the same windows",
			n, condition.MaxQueries)
	}
	return nil
}
