package lint

import (
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

// levels returns the risks that conditions can tell apart, of those that there are: a score is at least the baseline of
// its mode, and a mode at least what set_mode_by_score makes of the score. Points are scores as in [scores].
func (s *scale) levels(points []int) (all []level) {
	points = append(slices.Clone(points), risk.MaxScore)
	for _, m := range s.modes {
		points = append(points, m.Baseline)
	}
	for score := 1; score <= risk.MaxScore; score++ {
		if s.least[score] != s.least[score-1] {
			points = append(points, score-1, score)
		}
	}
	slices.Sort(points)
	for _, score := range slices.Compact(points) {
		for rank, m := range s.modes {
			if score >= m.Baseline && rank >= s.least[score] {
				all = append(all, level{m.Name, rank, score})
			}
		}
	}
	return all
}
