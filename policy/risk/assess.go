package risk

import (
	"fmt"
	"math"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// Judge returns the risk of a call. Policies share the subject, so that the arguments are decoded
// once. Judge sets what only expressions of risk rules can name; it does not set the subject's
// risk.
func (m *Model) Judge(subject *condition.Subject) Assessment {
	switch {
	case m == nil || len(m.modes) == 0:
		return worstAssessment(Unknown, "there is no risk model")
	case subject == nil:
		return worstAssessment(m.modes[len(m.modes)-1].Name, "there is no call to assess")
	}

	input := subject.Input()
	j := judgement{m: m, subject: subject, state: state{level: m.initial}}

	for i := range m.rules {
		r := &m.rules[i]
		if !r.globs.Fit(&input) {
			continue
		}
		madeBefore := len(j.contributions)
		matches, unknown := true, error(nil)
		if r.args != nil {
			matches, unknown = r.args.True(subject)
		}
		if (matches || unknown != nil) && !subject.Spent() {
			j.applyRule(r, unknown)
		}
		if subject.Spent() {
			j.contributions = j.contributions[:madeBefore] // drop the contribution of this rule
			return j.stopSpent(r)
		}
	}

	j.raiseByScore()
	return Assessment{Contributions: j.contributions, Mode: m.modes[j.level].Name, Score: j.effectiveScore(j.m)}
}

func worstAssessment(mode, why string) Assessment {
	contributions := []Contribution{{Failed: why, Mode: mode, Score: MaxScore}}
	return Assessment{Mode: mode, Score: MaxScore, Contributions: contributions}
}

// stopSpent ends the judgement at a rule.
func (j *judgement) stopSpent(r *rule) Assessment {
	top := j.m.modes[len(j.m.modes)-1].Name
	reason := fmt.Sprintf("The budget for conditions was spent at the risk rule %q, so the call is denied.",
		visible.Cut(r.id, 80, "…"))
	contributions := append(j.contributions, Contribution{
		Rule:    r.id,
		Reason:  r.reason,
		Failed:  reason,
		Matched: true,
		Mode:    top,
		Score:   MaxScore,
	})
	return Assessment{Mode: top, Score: MaxScore, Contributions: contributions, Spent: reason}
}

// A judgement is the state of one assessment.
type judgement struct {
	state
	m             *Model
	subject       *condition.Subject
	varsSet       bool
	contributions []Contribution
}

// state is the part of a judgement that rules change. Every increase is more risk.
type state struct {
	level  int // the index in the ladder
	score  int // the score that expressions have set
	floor  int // no rule sets a lower level after a failure
	failed bool
}

// effectiveScore returns the score, at least the baseline of the mode.
func (s *state) effectiveScore(m *Model) int { return max(s.score, m.modes[s.level].Baseline) }

// applyRule applies a rule. If it is unknown whether the rule matches, it can only raise.
func (j *judgement) applyRule(r *rule, unknown error) {
	stateBefore, certain := j.state, unknown == nil
	j.applyMode(j.m, r, certain)

	contribution := Contribution{Rule: r.id, Reason: r.reason}
	if r.score != nil {
		score, err := j.evaluateScore(r)
		j.applyScore(j.m, score, err != nil, certain)
		if err != nil {
			contribution.Failed = fmt.Sprintf("score_expr failed: one level up, and the score is %d: %v", MaxScore, err)
		}
	}

	contribution.Matched = certain || !r.onlyLowers(stateBefore.level)
	if !certain {
		counted := "the rule counts as not matched: it would lower"
		if contribution.Matched {
			counted = "the rule counts as matched"
		}
		failure := unknown.Error() + "; " + counted
		if contribution.Failed != "" {
			failure += "; " + contribution.Failed
		}
		contribution.Failed = failure
	}

	contribution.Mode, contribution.Score = j.m.modes[j.level].Name, j.effectiveScore(j.m)
	j.contributions = append(j.contributions, contribution)
}

// applyMode applies set_mode, then escalate. A rule that is not certain to match never lowers the
// mode.
func (s *state) applyMode(m *Model, r *rule, certain bool) {
	levelBefore := s.level
	if r.setMode >= 0 {
		s.level = max(r.setMode, s.floor)
	}

	if r.escalate {
		s.level = min(s.level+1, len(m.modes)-1)
	}

	if !certain {
		s.level = max(s.level, levelBefore)
	}
}

// applyScore sets the score that a rule computed. After a failure the score stays at the highest,
// whatever later rules compute.
func (s *state) applyScore(m *Model, score int, failed, certain bool) {
	switch {
	case failed:
		s.level = min(s.level+1, len(m.modes)-1)
		s.floor, s.score, s.failed = s.level, MaxScore, true
	case s.failed:
	case certain:
		s.score = score
	default:
		s.score = max(s.score, score)
	}
}

// onlyLowers reports whether a rule only sets a mode less severe than the current one.
func (r *rule) onlyLowers(level int) bool {
	return r.setMode >= 0 && r.setMode < level && !r.escalate && r.score == nil
}

// evaluateScore computes a rule's score.
func (j *judgement) evaluateScore(r *rule) (int, error) {
	if r.usesVars && !j.varsSet {
		j.setVars()
	}
	v, err := r.score.Value(j.subject.WithScore(float64(j.effectiveScore(j.m)))) // finite
	return scoreOf(v), err
}

// scoreOf rounds the value of an expression up to a score.
func scoreOf(value float64) int { return int(min(max(math.Ceil(value), 0), MaxScore)) }

func (j *judgement) setVars() {
	j.varsSet = true
	j.subject.WithScore(float64(j.m.modes[j.m.initial].Baseline))
	for _, v := range j.m.vars {
		if value, err := v.program.Value(j.subject); err != nil {
			j.subject.WithFailedVar(v.name, err.Error())
		} else {
			j.subject.WithVar(v.name, value)
		}
	}
}

// raiseByScore applies set_mode_by_score until it gives no more severe mode.
func (j *judgement) raiseByScore() {
	for next := j.raise(j.m); next != nil; next = j.raise(j.m) {
		j.contributions = append(j.contributions, Contribution{
			Matched: true,
			Rule:    ByScore,
			Reason:  next.when,
			Mode:    j.m.modes[j.level].Name,
			Score:   j.effectiveScore(j.m),
		})
	}
}

// raise applies set_mode_by_score once, and returns the entry that raised the mode; nil if none did.
func (s *state) raise(m *Model) *step {
	if m.byScore == nil {
		return nil
	}
	next := &m.byScore[s.effectiveScore(m)]
	if next.level <= s.level {
		return nil
	}
	s.level = next.level
	return next
}
