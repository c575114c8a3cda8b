package lint

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/rules"
)

// unreachable finds the policies that decide no call, and those that ask for nobody.
func (l *linter) unreachable(entries []*entry) {
	deciding := newNeighbours(l.patterns) // those above that decide whatever fits their globs, and are reached
	var others []*entry                   // those above that decide only what fits their conditions too
	above := newNeighbours(l.patterns)    // both
	work, ways := maxSteps, maxWays
	for _, e := range entries {
		by, whole := l.coveredBy(e, deciding.near(e), &work)
		if !whole {
			by, whole = l.impliedBy(e, others)
		}
		if by == nil {
			by, whole = decidedBefore(e, above.of(e, maxBeside), &work, &ways)
		}
		if by != nil {
			l.report(e, by, whole)
		}
		if by != nil && whole || e.shadow {
			continue
		}
		above.add(e)
		if e.decides() {
			deciding.add(e)
		} else {
			others = append(others, e)
		}
	}
}

// decidedBefore returns the policies above that, with their conditions, decide every call that e could decide; or, if
// not whole, every call for which e would ask for a person.
func decidedBefore(e *entry, above []*entry, work, ways *int) (by []*entry, whole bool) {
	if len(above) == 0 || *ways <= 0 {
		return nil, false
	}
	m, ok := newModel(e, above, nil, work)
	if !ok {
		return nil, false
	}
	if by, never := m.never(m.decides, ways); never {
		return by, true
	}
	if e.holds() {
		if by, never := m.never(m.asks, ways); never {
			return by, false
		}
	}
	return nil, false
}

// report says that those in by decide everything that e matches. If not whole, e is still reached where its condition
// fails, but asks for nobody.
func (l *linter) report(e *entry, by []*entry, whole bool) {
	var said []string
	allows := false
	for _, b := range by {
		allows = allows || b.Effect == rules.Allow
		said = append(said, fmt.Sprintf("policy %d (%q, %s)", b.at, b.id, b.Effect))
	}
	if n := len(said); n > 4 {
		said = append(said[:3], fmt.Sprintf("%d others", n-3))
	}
	who := strings.Join(said, " and ")
	switch {
	case len(by) == 0:
		return // its own conditions never let it, which is said of them
	case e.holds() && allows:
		l.add(e.place, "match", ApprovalUnreachable, "move the policy above, or narrow the one above",
			"nobody is ever asked: every call that this policy would hold is decided before, by %s", who)
	case whole:
		l.add(e.place, "match", PolicyUnreachable, "move the policy above, narrow the one above, or delete this one",
			"no call gets here: every call that this policy matches is decided before, by %s", who)
	}
}

// coveredBy returns the policies that together decide every call that the globs of e fit: one if one does it alone.
func (l *linter) coveredBy(e *entry, deciding []*entry, work *int) (by []*entry, whole bool) {
	var some []candidate
	for _, d := range deciding {
		c := candidate{entry: d}
		// The tool tells most policies apart.
		for i, of := range [...]func(*entry) *pattern{toolOf, serverOf, envOf} {
			c.how[i] = l.patterns.relate(of(e), of(d))
			if c.how[i] == apart {
				break
			}
		}
		switch {
		case slices.Contains(c.how[:], apart):
		case c.how == [3]relation{within, within, within}:
			return []*entry{d}, true
		default:
			some = append(some, c)
		}
	}
	if len(some) < 2 || !covered(e, some, work) {
		return nil, false
	}
	for _, c := range some {
		by = append(by, c.entry)
	}
	return by, true
}

func toolOf(e *entry) *pattern   { return e.tool }
func serverOf(e *entry) *pattern { return e.server }
func envOf(e *entry) *pattern    { return e.env }

// impliedBy returns a policy above whose globs fit all that the globs of e fit, and whose condition is true wherever
// that of e is: of what it demands, e demands everything and perhaps more. If it could only allow, and e could not, e
// is still reached where that condition fails; whole is false then.
func (l *linter) impliedBy(e *entry, above []*entry) (by []*entry, whole bool) {
	if e.when == nil {
		return nil, false
	}
	for _, a := range above {
		if a.when == nil || !subset(a.when.conjuncts, e.when.conjuncts) ||
			l.patterns.relate(e.tool, a.tool) != within || l.patterns.relate(e.server, a.server) != within ||
			l.patterns.relate(e.env, a.env) != within {
			continue
		}
		if a.strict || !e.strict {
			return []*entry{a}, true
		}
		by = []*entry{a}
	}
	return by, false
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// ownApproval finds an approval that the policy itself never asks for, since it denies first.
func (l *linter) ownApproval(e *entry) {
	if e.ask == nil || e.deny == nil {
		return
	}
	if e.deny.only(canTrue|canFail) || subset(e.deny.conjuncts, e.ask.conjuncts) || neverAsks(e) {
		l.add(e.place, "require_approval_if", ApprovalUnreachable, "narrow deny",
			"nobody is ever asked: wherever this is true, deny is true or fails, and denies")
	}
}

// neverAsks reports whether e asks for nobody where its deny stands, and would without it.
func neverAsks(e *entry) bool {
	if e.ask.outcomes&canTrue == 0 || e.Effect != rules.Allow {
		return false
	}
	work, ways := maxSteps, maxOwnWays
	m, ok := newModel(e, nil, nil, &work)
	if !ok {
		return false
	}
	if _, never := m.never(m.asks, &ways); !never {
		return false
	}
	free := *e
	free.deny = nil
	m.subject = &free
	_, never := m.never(m.asks, &ways)
	return !never
}
