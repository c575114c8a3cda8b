package lint

import (
	"slices"

	"cel.dev/cel-go/common/types"

	"pgfsm/internal/glob"
	"pgfsm/policy/rules"
)

// Bounds of the search for one policy. Beyond them nothing is reported.
const (
	maxOverlapping = 128     // policies that can match the same calls
	maxJudgements  = 1 << 16 // of one policy at one point
)

// notMonotonic finds policies that stop a call, although at a higher mode or score a policy allows the same call.
func (l *linter) notMonotonic(entries []*entry) {
	if l.levels == nil {
		return
	}
	enforced := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.shadow })
	for _, e := range enforced {
		if !e.strict || !e.asksRisk() {
			continue
		}
		about := slices.DeleteFunc(slices.Clone(enforced), func(a *entry) bool { return !a.match.overlaps(&e.match) })
		if len(about) > maxOverlapping {
			continue
		}
		s := &monotonySearch{world: l.world(e, about...), subject: e, policies: about, left: maxJudgements}
		if s.find() {
			l.add(e.place, s.key, RiskNotMonotonic, `write risk.mode != "safe", or risk.score >= n, so that more risk stays in`,
				"it stops a call in %s, and the same call in %s is allowed, by policy %d (%q)", s.low, s.high, s.by.at, s.by.id)
		}
	}
}

// A monotonySearch looks for two levels of one call, of which only the higher is allowed.
type monotonySearch struct {
	*world
	subject  *entry
	policies []*entry // with the subject, in their order
	left     int      // judgements

	low, high level
	key       string // whose condition stops at the lower
	by        *entry // which allows at the higher
}

// find tries sample names with all answers to the questions of the subject's conditions, besides the risk.
func (s *monotonySearch) find() bool {
	var names [nameCount][]string
	for i, g := range s.subject.match {
		var others []*glob.Glob
		for _, p := range s.policies {
			others = append(others, p.match[i])
		}
		names[i] = samples(g, others)
	}
	return eachName(names, func(names *[nameCount]string) bool {
		for i, name := range nameOf {
			s.values[name] = types.String(names[i])
		}
		questions := s.questions(expressions(s.subject)...)
		return few(questions) && s.search(questions, s.falls)
	})
}

// falls reports whether the subject stops a call at one level, and the call is allowed at a higher one.
func (s *monotonySearch) falls() bool {
	type stop struct {
		level
		key string
	}
	var stops []stop
	defer s.risk().forget()
	for _, l := range s.levels {
		if s.left--; s.left < 0 {
			return false
		}
		s.setLevel(l)
		if key := s.stops(); key != "" && !s.decidedAbove() {
			stops = append(stops, stop{l, key})
			continue
		}
		k := slices.IndexFunc(stops, func(s stop) bool { return l.isAbove(s.level) })
		if k < 0 {
			continue
		}
		if by := s.allows(); by != nil {
			s.low, s.high, s.key, s.by = stops[k].level, l, stops[k].key, by
			return true
		}
	}
	return false
}

// decidedAbove reports whether a policy above the subject decides for certain.
func (s *monotonySearch) decidedAbove() bool {
	for _, p := range s.policies {
		if s.left--; p == s.subject {
			break
		}
		if s.decides(p) == canTrue {
			return true
		}
	}
	return false
}

// stops returns the key by which the subject denies or holds for certain, though not by failing; empty if it does not.
func (s *monotonySearch) stops() string {
	e := s.subject
	switch {
	case s.world.fits(&e.match) != canTrue || s.condition(e.when, canTrue) != canTrue:
		return ""
	case e.Effect != rules.Allow && e.when != nil && e.when.asksRisk:
		return "when"
	case s.condition(e.deny, canFalse) == canTrue:
		return "deny"
	case s.condition(e.ask, canFalse) == canTrue:
		return "require_approval_if"
	case e.Effect != rules.Allow:
		return "effect"
	}
	return ""
}

// allows returns the policy that allows the call for certain, or nil. A policy above the subject that does not ask for the risk
// has decided nothing, since the subject decided at the lower level.
func (s *monotonySearch) allows() *entry {
	above := true
	for _, p := range s.policies {
		s.left--
		above = above && p != s.subject
		switch decides := s.decides(p); {
		case decides == canFalse, above && !p.asksRisk():
		case decides == canTrue && p.Effect == rules.Allow && s.condition(p.deny, canFalse)|s.condition(p.ask, canFalse) == canFalse:
			return p
		default:
			return nil
		}
	}
	return nil
}

// asksRisk reports whether a condition of the policy asks for mode or score.
func (e *entry) asksRisk() bool {
	return slices.ContainsFunc(expressions(e), func(x *expression) bool { return x.asksRisk })
}
