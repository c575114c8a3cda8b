package lint

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// reachability finds the policies that decide no call, and those that never ask for approval.
func (l *linter) reachability(entries []*entry) {
	var above []*entry // those that decide something
	for _, e := range entries {
		var including, overlapping []*entry
		for _, a := range above {
			if a.match.overlaps(&e.match) {
				overlapping = append(overlapping, a)
				if a.match.includes(&e.match) {
					including = append(including, a)
				}
			}
		}
		by := l.coveredBy(e, including, (*view).decides)
		unreached := by != nil
		if !unreached && e.holds() {
			by = l.coveredBy(e, including, (*view).holds)
		}
		switch {
		case by != nil:
			l.unreachable(e, by, unreached)
		case len(overlapping) > 1 && !l.sampled(e, overlapping):
			l.add(e.place, "match", ReachabilityUnknown, "move the policy above, or write those above as one",
				"several policies above may together decide every call that this policy matches")
		}
		if !unreached && !e.shadow {
			above = append(above, e)
		}
	}
}

// coveredBy returns the policies above that decide every call for which a goal of e can be true: only one if one suffices, nil if there are none or lint
// cannot tell. The matches of all of them include that of e.
func (l *linter) coveredBy(e *entry, above []*entry, goal func(*view, *entry) condition.Outcomes) []*entry {
	covered := func(by []*entry) bool {
		v := newView(&e.match, l.risk.levels(append([]*entry{e}, by...)))
		return !v.exists(v.questions(append([]*entry{e}, by...)...), func() bool {
			return goal(v, e)&canTrue != 0 && !slices.ContainsFunc(by, func(a *entry) bool { return v.decides(a) == canTrue })
		})
	}
	if covered(nil) {
		return nil // constants reports it
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

// sampled reports whether some sample names reach e, judged by names only.
func (l *linter) sampled(e *entry, above []*entry) bool {
	v := newView(&e.match, nil)
	var names [nameCount][]string
	for i, g := range e.match {
		names[i] = samples(g, nil)
	}
	return eachName(names, func(names *[nameCount]string) bool {
		v.names = names
		return !slices.ContainsFunc(above, func(a *entry) bool { return v.decides(a) == canTrue })
	})
}

// unreachable reports that the policies in by decide every call that e could decide; or, if e is reached, every call for
// which it would ask for approval.
func (l *linter) unreachable(e *entry, by []*entry, unreached bool) {
	var all []string
	allows := false
	for _, b := range by {
		allows = allows || b.Effect == rules.Allow
		all = append(all, fmt.Sprintf("policy %d (%q, %s)", b.at, b.id, b.Effect))
	}
	if n := len(all); n > 4 {
		all = append(all[:3], fmt.Sprintf("%d others", n-3))
	}
	deciders := strings.Join(all, " and ")
	switch {
	case e.holds() && allows:
		l.add(e.place, "match", ApprovalUnreachable, "move the policy above, or narrow the one above",
			"no call is ever held: earlier policies decide every call that this one would hold: %s", deciders)
	case unreached:
		l.add(e.place, "match", PolicyUnreachable, "move the policy above, narrow the one above, or delete this one",
			"no call gets here: every call that this policy matches is decided before, by %s", deciders)
	}
}

// approvalDenied finds a policy that never holds, because its deny applies first.
func (l *linter) approvalDenied(e *entry) {
	if e.ask == nil || e.deny == nil {
		return
	}
	v := newView(&e.match, l.risk.levels([]*entry{e}))
	open := v.questions(e)
	without := *e
	without.deny = nil
	asks := func(e *entry) bool { return v.exists(open, func() bool { return v.holds(e)&canTrue != 0 }) }
	if !asks(e) && asks(&without) {
		l.add(e.place, "require_approval_if", ApprovalUnreachable, "narrow deny",
			"no call is ever held: wherever this is true, deny is true or fails, and denies")
	}
}
