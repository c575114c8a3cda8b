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

// Asking returns all expressions with queries about earlier calls, in order.
func (m *Model) Asking() (all []condition.Asking) {
	if m == nil {
		return nil
	}
	for i := range m.vars {
		if q := m.vars[i].program.Queries(); len(q) > 0 {
			all = append(all, condition.Asking{List: "vars", Index: i, Key: "expr", Queries: q})
		}
	}
	for i := range m.rules {
		if q := m.rules[i].score.Queries(); len(q) > 0 {
			all = append(all, condition.Asking{List: "rules", Index: i, Key: "score_expr", Queries: q})
		}
	}
	return all
}

// Uses reports whether an expression names something.
func (m *Model) Uses(name string) bool {
	return m != nil && (slices.ContainsFunc(m.vars, func(v variable) bool { return v.program.Uses(name) }) ||
		slices.ContainsFunc(m.rules, func(r rule) bool { return r.score.Uses(name) }))
}
