package lint

import (
	"cmp"
	"fmt"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A level is a mode and a score that a call can have together.
type level struct {
	mode  string
	rank  int // the mode's rank, least severe first
	score int
}

func (l level) String() string { return fmt.Sprintf("mode %q with score %d", clip(l.mode), l.score) }

// isAbove reports whether l is more risk than m.
func (l level) isAbove(m level) bool { return l != m && l.rank >= m.rank && l.score >= m.score }

// levelsOf returns the levels that risk rules can give: a score is at least the baseline of its
// mode, and a mode at least what set_mode_by_score makes of the score. Without risk rules there are
// none, and the risk is unknown.
func levelsOf(c *risk.Content) (levels []level) {
	if c == nil {
		return nil
	}
	env, err := condition.ScoreEnv()
	if err != nil {
		return nil
	}

	var thresholds []*condition.Program
	for _, t := range c.ModeByScore {
		p, err := env.Bool(t.When)
		if err != nil {
			return nil
		}
		thresholds = append(thresholds, p)
	}

	// For each score, the modes that set_mode_by_score and the baselines leave.
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
				levels = append(levels, level{m.Name, rank, score})
			}
		}
	}

	return levels
}

// distinguishLevels returns, for each mode, the lowest and the highest score of each class of
// levels that the conditions cannot tell apart; nil if they do not ask.
func distinguishLevels(levels []level, expressions ...*expression) (distinct []level) {
	var atoms []*atom
	for _, x := range expressions {
		x.formula.forEachAtom(func(a *atom) {
			if asksRisk(a) && !slices.ContainsFunc(atoms, func(b *atom) bool { return a.key == b.key }) {
				atoms = append(atoms, a)
			}
		})
	}

	if len(atoms) == 0 {
		return nil
	}

	// Levels of one mode with the same answers are a class; levels come with rising scores.
	values, highest := map[string]ref.Val{}, map[string]int{} // index in some, by mode and answers
	for _, l := range levels {
		values["risk.mode"], values["risk.score"] = types.String(l.mode), types.Int(l.score)
		answers := append([]byte(l.mode), make([]byte, len(atoms))...)
		for i, a := range atoms {
			answers[len(l.mode)+i] = byte(a.outcomesFor(values))
		}
		if i, ok := highest[string(answers)]; ok {
			distinct[i] = l
			continue
		}
		distinct = append(distinct, l, l)
		highest[string(answers)] = len(distinct) - 1
	}

	slices.SortFunc(distinct, func(a, b level) int {
		return cmp.Or(cmp.Compare(a.score, b.score),
			cmp.Compare(a.rank, b.rank))
	})
	return slices.Compact(distinct)
}

func asksRisk(a *atom) bool {
	return slices.Contains(a.reads, "risk.mode") || slices.Contains(a.reads, "risk.score")
}
