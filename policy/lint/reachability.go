package lint

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/rules"
)

// checkReachability finds the policies that decide no call, and those that never ask for approval.
func (l *linter) checkReachability(entries []*entry) {
	var above []*entry // the policies above that decide something
	for _, e := range entries {
		including := slices.DeleteFunc(slices.Clone(above), func(a *entry) bool { return !a.match.includes(&e.match) })
		covering := l.coveredBy(e, including, (*world).decisionOutcomes)
		unreached := covering != nil
		if !unreached && e.holdsCalls() {
			covering = l.coveredBy(e, including, (*world).holdOutcomes)
		}
		if covering != nil {
			l.reportUnreachable(e, covering, unreached)
		}
		if !unreached && !e.shadow {
			above = append(above, e)
		}
	}
}

// coveredBy returns the policies above that decide every call for which a goal of e can be true:
// only one if one suffices, nil if there are none or lint cannot tell. The matches of all of them
// include that of e.
func (l *linter) coveredBy(e *entry, above []*entry, goal func(*world, *entry) outcomes) []*entry {
	covered := func(by []*entry) bool {
		w := l.worldOf(e, by...)
		w.ownConditions = len(e.conditions())
		return !w.existsPoint(w.questionsOf(append(expressionsOf(e), expressionsOf(by...)...)...), func() bool {
			return goal(w, e)&canTrue != 0 &&
				!slices.ContainsFunc(by, func(a *entry) bool { return w.decisionOutcomes(a) == canTrue })
		})
	}
	if covered(nil) {
		return nil // findConstants reports it
	}
	for i := range above {
		if one := above[i : i+1]; covered(one) {
			return one
		}
	}
	if len(above) > 1 && covered(above) {
		return above
	}
	return nil
}

// reportUnreachable reports that the policies in by decide every call that e could decide; or, if e
// is reached, every call for which it would ask for approval.
func (l *linter) reportUnreachable(e *entry, by []*entry, unreached bool) {
	var texts []string
	allows := false
	for _, b := range by {
		allows = allows || b.Effect == rules.Allow
		texts = append(texts, fmt.Sprintf("policy %d (%q, %s)", b.index, b.id, b.Effect))
	}
	if n := len(texts); n > 4 {
		texts = append(texts[:3], fmt.Sprintf("%d others", n-3))
	}
	deciders := strings.Join(texts, " and ")
	switch {
	case e.holdsCalls() && allows:
		l.add(e.place, "match", ApprovalUnreachable, "move the policy above, or narrow the one above",
			"no call is ever held: earlier policies decide every call that this one would hold: %s", deciders)
	case unreached:
		l.add(e.place, "match", PolicyUnreachable, "move the policy above, narrow the one above, or delete this one",
			"no call gets here: every call that this policy matches is decided before, by %s", deciders)
	}
}
