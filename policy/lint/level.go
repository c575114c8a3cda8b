package lint

import (
	"cmp"
	"fmt"
	"slices"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A level is one risk that a call can have.
type level struct {
	mode  string
	rank  int // of the mode, mildest first
	score int
}

func (l level) String() string { return fmt.Sprintf("mode %q with score %d", clip(l.mode), l.score) }

// above reports whether l is more risk than m.
func (l level) above(m level) bool { return l != m && l.rank >= m.rank && l.score >= m.score }

// A scale says which modes a score can have.
type scale struct {
	modes []risk.Mode
	least [risk.MaxScore + 1]int // the mildest mode of each score, by set_mode_by_score
}

// newScale computes set_mode_by_score for every score, as package risk does. It is nil if there are no modes.
func newScale(c *risk.Content) *scale {
	if c == nil || len(c.Modes) == 0 {
		return nil
	}
	s := &scale{modes: c.Modes}
	env, err := condition.ScoreEnv()
	if err != nil {
		return nil
	}
	subject := condition.NewSubject(&condition.Input{})
	var programs []*condition.Program
	for _, t := range c.ModeByScore {
		p, err := env.Bool(t.When)
		if err != nil {
			return nil // package risk takes what is no Bool, too; nothing is said then
		}
		programs = append(programs, p)
	}
	for score := range s.least {
		subject.WithScore(float64(score))
		for i, p := range programs {
			if yes, err := p.True(subject); err == nil && yes {
				s.least[score] = max(0, slices.IndexFunc(c.Modes, func(m risk.Mode) bool { return m.Name == c.ModeByScore[i].Mode }))
				break
			}
		}
	}
	return s
}

// levels returns, for each mode and each class of scores that the tests cannot tell apart, the risks with the least and the
// highest score. Only risks count that there can be: a score is at least the baseline of its mode, and a mode at least what
// set_mode_by_score makes of the score.
func (s *scale) levels(atoms []*condition.Atom) (all []level) {
	for rank, m := range s.modes {
		index := make(map[string]int)
		for score := m.Baseline; score <= risk.MaxScore; score++ {
			if rank < s.least[score] {
				continue
			}
			key := answersAt(atoms, m.Name, score)
			if i, ok := index[key]; ok {
				all[i+1].score = score
				continue
			}
			index[key] = len(all)
			all = append(all, level{m.Name, rank, score}, level{m.Name, rank, score})
		}
	}
	slices.SortFunc(all, func(a, b level) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.rank, b.rank)) })
	return slices.Compact(all)
}
