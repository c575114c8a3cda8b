package risk

import "pgfsm/policy/condition"

// Possible returns every mode and score that the rules can give calls of a tool, without the rules
// that matched. An expression can have any value, and can fail. matches says whether a rule can match,
// can not match, and can be unknown; it is not asked about rules whose globs do not fit. The calls
// whose budget is spent are left out.
func (m *Model) Possible(server, tool, env string, matches func(rule int) (yes, no, unknown bool)) (risks []condition.Risk) {
	input := &condition.Input{Server: server, Tool: tool, Env: env}
	states := []state{{level: m.initial}}

	for i := range m.rules {
		r := &m.rules[i]
		if !r.globs.Fit(input) {
			continue
		}
		var next []state
		known := map[state]bool{}
		add := func(s state) {
			if !known[s] {
				known[s], next = true, append(next, s)
			}
		}
		yes, no, unknown := matches(i)
		for _, s := range states {
			if no {
				add(s)
			}
			if yes {
				m.follow(s, r, true, add)
			}
			if unknown {
				m.follow(s, r, false, add)
			}
		}
		states = next
	}

	known := map[state]bool{}
	for _, s := range states {
		for s.raise(m) != nil {
		}
		reached := state{level: s.level, score: s.effectiveScore(m)}
		if !known[reached] {
			known[reached] = true
			risks = append(risks, condition.Risk{Mode: m.modes[reached.level].Name, Score: reached.score})
		}
	}
	return risks
}

// follow adds the states after a rule.
func (m *Model) follow(s state, r *rule, certain bool, add func(state)) {
	s.applyMode(m, r, certain)
	if r.score == nil {
		add(s)
		return
	}
	for score := range MaxScore + 1 {
		scored := s
		scored.applyScore(m, score, false, certain)
		add(scored)
	}
	s.applyScore(m, 0, true, certain)
	add(s)
}

// Levels returns every mode with every score that a call can have with it, by rising scores: a score
// is at least the baseline of its mode, and a mode at least what set_mode_by_score makes of the score.
func (m *Model) Levels() (levels []condition.Risk) {
	for score := range MaxScore + 1 {
		for rank, mode := range m.modes {
			if score >= mode.Baseline && (m.byScore == nil || rank >= m.byScore[score].level) {
				levels = append(levels, condition.Risk{Mode: mode.Name, Score: score})
			}
		}
	}
	return levels
}
