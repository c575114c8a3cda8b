package risk

import (
	"slices"

	"pgfsm/policy/condition"
)

// Queries returns the queries of variables and of the risk rules that may match a call, in order and each once.
func (m *Model) Queries(server, tool, env string) (all []condition.Query) {
	if m == nil {
		return nil
	}
	for i := range m.vars {
		all = append(all, m.vars[i].program.Queries()...)
	}
	for i := range m.rules {
		r := &m.rules[i]
		if q := r.score.Queries(); len(q) > 0 && fits(r.server, server) && fits(r.tool, tool) && fits(r.env, env) {
			all = append(all, q...)
		}
	}
	return condition.Distinct(all)
}

// An Asking expression has a query about earlier calls.
type Asking struct {
	List    string // vars or rules
	Index   int
	Key     string
	Queries []condition.Query
}

// Asking returns all expressions with queries about earlier calls, in order.
func (m *Model) Asking() (all []Asking) {
	if m == nil {
		return nil
	}
	for i := range m.vars {
		if q := m.vars[i].program.Queries(); len(q) > 0 {
			all = append(all, Asking{"vars", i, "expr", q})
		}
	}
	for i := range m.rules {
		if q := m.rules[i].score.Queries(); len(q) > 0 {
			all = append(all, Asking{"rules", i, "score_expr", q})
		}
	}
	return all
}

// Uses reports whether an expression names something.
func (m *Model) Uses(name string) bool {
	return m != nil && (slices.ContainsFunc(m.vars, func(v variable) bool { return v.program.Uses(name) }) ||
		slices.ContainsFunc(m.rules, func(r rule) bool { return r.score.Uses(name) }))
}
