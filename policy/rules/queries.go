package rules

import (
	"slices"

	"pgfsm/policy/condition"
)

// Queries returns the queries of the policies that may match a call, in order and each once.
func (s *Set) Queries(server, tool, env string) (all []condition.Query) {
	if s == nil {
		return nil
	}
	in := &condition.Input{Server: server, Tool: tool, Env: env}
	for _, i := range s.asking {
		if p := &s.policies[i]; p.fits(in) {
			all = append(all, p.queries()...)
		}
	}
	return condition.Distinct(all)
}

// Asking returns all conditions with queries about earlier calls, in order.
func (s *Set) Asking() (all []condition.Asking) {
	if s == nil {
		return nil
	}
	for _, i := range s.asking {
		p := &s.policies[i]
		for _, key := range []string{"when", "deny", "require_approval_if"} {
			if q := p.condition(key).Queries(); len(q) > 0 {
				all = append(all, condition.Asking{List: "policies", Index: i, Key: key, Queries: q})
			}
		}
	}
	return all
}

// queries are those of all conditions of a policy.
func (p *policy) queries() []condition.Query {
	return slices.Concat(p.when.Queries(), p.deny.Queries(), p.ask.Queries())
}

// Uses reports whether a condition names something.
func (s *Set) Uses(name string) bool {
	return s != nil && slices.ContainsFunc(s.policies, func(p policy) bool { return p.when.Uses(name) || p.deny.Uses(name) || p.ask.Uses(name) })
}
