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
	maxJudgements  = 1 << 16 // for all policies at one point
)

// notMonotonic finds policies that stop a call, although at a higher mode or score a policy allows
// the same call.
func (l *linter) notMonotonic(entries []*entry) {
	enforced := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.shadow })
	for _, e := range enforced {
		if l.levels == nil || !e.strict || !e.asksRisk {
			continue
		}
		about := slices.DeleteFunc(slices.Clone(enforced), func(a *entry) bool { return !a.match.overlaps(&e.match) })
		if len(about) <= maxOverlapping {
			l.stopsLessRisk(e, about)
		}
	}
}

// stopsLessRisk tries sample names with all answers to the questions of the policy's conditions: it
// looks for two levels of one call, of which the policy stops the lower, and of which the higher is
// allowed.
func (l *linter) stopsLessRisk(e *entry, about []*entry) {
	type stop struct {
		level
		key string
	}
	w, left := l.worldOf(e, about...), maxJudgements
	questions := w.questionsWithoutRisk(expressionsOf(e)...)
	atPoint := func() bool {
		var stops []stop
		defer w.riskQuestion().forget()
		for _, candidate := range w.levels {
			if left -= len(about); left < 0 {
				return false
			}
			w.setLevel(candidate)
			decider, key := w.decidingPolicy(e, about)
			if decider == e && key != "" {
				stops = append(stops, stop{candidate, key})
				continue
			}
			// The call is allowed here: was it stopped at less risk?
			k := slices.IndexFunc(stops, func(s stop) bool { return candidate.isAbove(s.level) })
			if k >= 0 && decider != nil && key == "" {
				l.add(e.place, stops[k].key, RiskNotMonotonic, `write risk.mode != "safe", or risk.score >= n, so that more risk stays in`,
					"it stops a call in %s, and the same call in %s is allowed, by policy %d (%q)", stops[k].level,
					candidate, decider.index, decider.id)
				return true
			}
		}
		return false
	}

	// The names to try are those that the globs of these policies tell apart.
	var names [nameCount][]string
	for i, g := range e.match {
		var others []*glob.Glob
		for _, p := range about {
			others = append(others, p.match[i])
		}
		names[i] = sampleNames(g, others)
	}

	if !canEnumerate(questions) {
		return
	}

	eachName(names, func(names *[nameCount]string) bool {
		for i, name := range nameOf {
			w.values[name] = types.String(names[i])
		}
		return w.searchPoints(questions, atPoint)
	})
}

// decidingPolicy returns the policy that decides at the point, and the key by which it denies or
// holds; empty if it allows. The policy is nil if it is not certain that one of both happens.
// Policies above the subject that do not ask for the risk count as if they did not match, unless
// they match for certain.
func (w *world) decidingPolicy(subject *entry, policies []*entry) (by *entry, key string) {
	isAbove := true
	for _, p := range policies {
		isAbove = isAbove && p != subject
		decides := w.decisionOutcomes(p)

		switch {
		case decides == canFalse || decides != canTrue && isAbove && !p.asksRisk:
			continue
		case decides != canTrue:
			return nil, ""
		}

		deny, ask := w.conditionOutcomes(p.deny, canFalse), w.conditionOutcomes(p.ask, canFalse)
		switch {
		case p.Effect == rules.Allow && deny|ask == canFalse:
			return p, ""
		case w.conditionOutcomes(p.when, canTrue) != canTrue: // the condition fails, which denies
		case p.Effect != rules.Allow && p.when != nil && p.when.asksRisk:
			return p, "when"
		case deny == canTrue:
			return p, "deny"
		case ask == canTrue:
			return p, "require_approval_if"
		case p.Effect != rules.Allow:
			return p, "effect"
		}

		return nil, ""
	}
	return nil, ""
}
