package lint

import (
	"cmp"
	"fmt"
	"slices"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A level is a mode and a score that a call can have together.
type level struct {
	mode  string
	rank  int // of the mode, least severe first
	score int
}

func (l level) String() string { return fmt.Sprintf("mode %q with score %d", clip(l.mode), l.score) }

// above reports whether l is more risk than m.
func (l level) above(m level) bool { return l != m && l.rank >= m.rank && l.score >= m.score }

// riskLevels are the levels that the risk rules can give, reduced to those that the policies can distinguish.
type riskLevels struct{ all []level }

// newRiskLevels enumerates the levels: a score is at least the baseline of its mode, and a mode at least what set_mode_by_score makes of the score. Without
// risk rules there are none, and the risk is unknown.
func newRiskLevels(c *risk.Content, entries []*entry) *riskLevels {
	r := &riskLevels{}
	if c == nil {
		return r
	}
	env, err := condition.ScoreEnv()
	if err != nil {
		return r
	}
	var thresholds []*condition.Program
	for _, t := range c.ModeByScore {
		p, err := env.Bool(t.When)
		if err != nil {
			return r
		}
		thresholds = append(thresholds, p)
	}
	subject := condition.NewSubject(&condition.Input{})
	for score := range risk.MaxScore + 1 {
		subject.WithScore(float64(score))
		least := 0
		for i, p := range thresholds {
			if yes, err := p.True(subject); err == nil && yes {
				least = slices.IndexFunc(c.Modes, func(m risk.Mode) bool { return m.Name == c.ModeByScore[i].Mode })
				break
			}
		}
		for rank, m := range c.Modes {
			if rank >= least && score >= m.Baseline {
				r.all = append(r.all, level{m.Name, rank, score})
			}
		}
	}
	r.all = r.levels(entries)
	return r
}

// levels returns, for each mode, the lowest and the highest score of each class that the policies' tests cannot tell apart.
func (r *riskLevels) levels(entries []*entry) (some []level) {
	var atoms []*condition.Atom
	seen := map[string]bool{}
	for _, e := range entries {
		for _, c := range e.conditions() {
			c.formula.Atoms(func(a *condition.Atom) {
				if a.AsksRisk() && !seen[a.Key] {
					seen[a.Key] = true
					atoms = append(atoms, a)
				}
			})
		}
	}
	highest := map[string]int{} // index in some, by mode and answers
	for _, l := range r.all {
		answers := append([]byte(l.mode), make([]byte, len(atoms))...)
		for i, a := range atoms {
			answers[len(l.mode)+i] = byte(a.AtRisk(l.mode, l.score))
		}
		if i, ok := highest[string(answers)]; ok {
			some[i] = l
			continue
		}
		some = append(some, l, l)
		highest[string(answers)] = len(some) - 1
	}
	slices.SortFunc(some, func(a, b level) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.rank, b.rank)) })
	return slices.Compact(some)
}
