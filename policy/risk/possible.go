package risk

import (
	"strings"

	"pgfsm/policy/condition"
)

// A Possibility says what is known of the calls whose risks [Model.Possible] lists.
type Possibility struct {
	// Matches says whether a rule can match, can not match, and can be unknown. It is not asked
	// about rules whose globs do not fit.
	Matches func(rule int) (yes, no, unknown bool)
	// Scores returns the values that the expression of a rule can have, and whether it can fail,
	// if the score is the given one.
	Scores func(rule, score int) (values []float64, fails bool)
	// Keeps reports whether the id of a rule belongs to the risks.
	Keeps func(id string) bool
	Most  int // states that are followed at most
}

// Possible returns every risk that the rules can give calls of a tool. It is false if there are too
// many to list. The calls whose budget is spent are left out.
func (m *Model) Possible(server, tool, env string, p Possibility) (risks []condition.Risk, ok bool) {
	input := &condition.Input{Server: server, Tool: tool, Env: env}
	states := []possibleState{{state: state{level: m.initial}}}

	for i := range m.rules {
		r := &m.rules[i]
		if !r.globs.Fit(input) {
			continue
		}
		next := possibleStates{most: p.Most, known: map[possibleKey]bool{}}
		yes, no, unknown := p.Matches(i)
		for _, s := range states {
			if no {
				next.add(s)
			}
			if yes {
				m.follow(&next, s, i, true, &p)
			}
			if unknown {
				m.follow(&next, s, i, false, &p)
			}
		}
		if len(next.list) > p.Most {
			return nil, false
		}
		states = next.list
	}

	known := map[possibleKey]bool{}
	for _, s := range states {
		for s.raise(m) != nil {
		}
		one := condition.Risk{Score: s.effectiveScore(m), Mode: m.modes[s.level].Name, Rules: s.rules}
		key := possibleKey{state{level: s.level, score: one.Score}, strings.Join(s.rules, "\x00")}
		if !known[key] {
			known[key] = true
			risks = append(risks, one)
		}
	}
	return risks, true
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

// follow adds the states after a rule.
func (m *Model) follow(next *possibleStates, s possibleState, rule int, certain bool, p *Possibility) {
	r := &m.rules[rule]
	if p.Keeps(r.id) && (certain || !r.onlyLowers(s.level)) {
		s.rules = append(s.rules[:len(s.rules):len(s.rules)], r.id)
	}
	s.applyMode(m, r, certain)
	if r.score == nil {
		next.add(s)
		return
	}

	values, fails := p.Scores(rule, s.effectiveScore(m))
	for _, value := range values {
		scored := s
		scored.applyScore(m, scoreOf(value), false, certain)
		next.add(scored)
	}
	if fails {
		s.applyScore(m, 0, true, certain)
		next.add(s)
	}
}

// A possibleState is a state with the rules that matched on the way to it.
type possibleState struct {
	state
	rules []string
}

type possibleStates struct {
	list  []possibleState
	known map[possibleKey]bool
	most  int
}

type possibleKey struct {
	state
	rules string
}

// add adds a state that is not there. Beyond the limit it adds one more, which shows that there are
// too many.
func (p *possibleStates) add(s possibleState) {
	key := possibleKey{s.state, strings.Join(s.rules, "\x00")}
	if len(p.list) <= p.most && !p.known[key] {
		p.known[key] = true
		p.list = append(p.list, s)
	}
}
