package rules

import (
	"fmt"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// Considered is one policy that was evaluated, and its result.
type Considered struct {
	Matched bool   `json:"matched"`
	Policy  string `json:"policy"` // its id
	Shadow  bool   `json:"shadow"` // the policy is in shadow, so its match decided nothing
	// Half a sentence: why it matched and what it says, or why it did not match.
	Why string `json:"why"`
}

// maxQuoted is the longest quoted name or condition in an explanation, in bytes.
const maxQuoted = 200

// Explain decides like [Set.Decide], and also returns every policy that it considered: from the
// first to the one that decided, or all.
func (s *Set) Explain(sub *condition.Subject) (d Decision, all []Considered) {
	d = s.decideObserved(sub, func(p *policy, v *policyResult) {
		c := Considered{Policy: p.id, Shadow: p.shadow}
		if v == nil {
			input := sub.Input()
			what, name, pattern := p.globs.Misfit(&input)
			c.Why = fmt.Sprintf("the %s %s is not %s", what, quoteText(name), quoteText(pattern))
		} else {
			c.Matched, c.Why = v.matched, p.describeConditions(v)
		}
		all = append(all, c)
	})
	return d, all
}

// describeConditions describes the result of the conditions of a policy whose globs fit.
func (p *policy) describeConditions(v *policyResult) string {
	source := func() string { return quoteText(p.conditionFor(v.condition).Source()) }
	switch {
	case v.isSpent():
		return fmt.Sprintf("%s, %s, was not evaluated: %s", v.condition, source(), v.err)
	case v.err != nil && !v.matched:
		return fmt.Sprintf("when, %s, failed, and a policy that can only allow does not match then: %s",
			source(), visible.Clip(v.err.Error(), maxFailed))
	case v.err != nil:
		return fmt.Sprintf("%s, %s, failed, which denies: %s", v.condition, source(),
			visible.Clip(v.err.Error(), maxFailed))
	case !v.matched:
		return fmt.Sprintf("when, %s, is false", source())
	case v.condition != "":
		return fmt.Sprintf("%s, %s, is true, which says %s", v.condition, source(), v.effect)
	}
	return "its effect is " + v.effect
}

func (p *policy) conditionFor(key string) *condition.Program {
	switch key {
	case "when":
		return p.when
	case "deny":
		return p.deny
	}
	return p.ask
}

// quoteText puts a text into quotes that it does not contain, if there are such.
func quoteText(text string) string {
	quote := `"`
	if strings.Contains(text, quote) && !strings.Contains(text, "`") {
		quote = "`"
	}
	return quote + visible.Clip(text, maxQuoted) + quote
}
