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

// An Asking condition has a query about earlier calls.
type Asking struct {
	Index   int    // of the policy
	Key     string // of the condition
	Queries []condition.Query
}

// Asking returns all conditions with queries about earlier calls, in order.
func (s *Set) Asking() (all []Asking) {
	if s == nil {
		return nil
	}
	for _, i := range s.asking {
		p := &s.policies[i]
		for _, one := range []Asking{
			{i, "when", p.when.Queries()}, {i, "deny", p.deny.Queries()}, {i, "require_approval_if", p.ask.Queries()},
		} {
			if len(one.Queries) > 0 {
				all = append(all, one)
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
