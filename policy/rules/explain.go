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
	Why     string `json:"why"`    // half a sentence: why it matched and what it says, or why it did not match
}

// maxQuoted is the longest quoted name or condition in an explanation, in bytes.
const maxQuoted = 200

// Explain decides like [Set.Decide], and also returns every policy that it considered: from the first to the one that decided, or all.
func (s *Set) Explain(sub *condition.Subject) (d Decision, all []Considered) {
	d = s.decide(sub, func(p *policy, v *verdict) {
		c := Considered{Policy: p.id, Shadow: p.shadow}
		if v == nil {
			in := sub.Input()
			what, name, pattern := p.globs.Misfit(&in)
			c.Why = fmt.Sprintf("the %s %s is not %s", what, quoted(name), quoted(pattern))
		} else {
			c.Matched, c.Why = v.matched, p.describeConditions(v)
		}
		all = append(all, c)
	})
	return d, all
}

// Settled reports whether the decision is the same whatever the missing answers about calls before are. open says that the risk depends
// on such an answer.
func (s *Set) Settled(sub *condition.Subject, open bool) bool {
	if s == nil || sub == nil {
		return true
	}
	in := sub.Input()
	possible := make(map[string]bool) // effects
	for i := range s.policies {
		p := &s.policies[i]
		if !p.shadow && p.globs.Fit(&in) && !p.settle(sub, open, possible) {
			return len(possible) == 1
		}
	}
	possible[Deny] = true // no policy matches
	return len(possible) == 1
}

// The possible results of a condition.
const (
	isTrue = 1 << iota
	isFalse
	fails
)

// settle adds the effects that a policy can have, and reports whether the next policy may decide.
func (p *policy) settle(sub *condition.Subject, open bool, possible map[string]bool) (passes bool) {
	ask := func(c *condition.Program, unwritten int) int {
		if c == nil {
			return unwritten
		}
		before := sub.Missing()
		switch yes, err := c.True(sub); {
		case err != nil && (open || sub.Missing() > before):
			return isTrue | isFalse | fails
		case err != nil:
			return fails
		case yes:
			return isTrue
		}
		return isFalse
	}

	when := ask(p.when, isTrue)
	if sub.Spent() || when&fails != 0 && p.strict {
		possible[Deny] = true
	}
	passes = !sub.Spent() && (when&isFalse != 0 || when&fails != 0 && !p.strict)
	if when&isTrue == 0 {
		return passes
	}
	deny := ask(p.deny, isFalse)
	if deny&(isTrue|fails) != 0 {
		possible[Deny] = true
	}
	if deny&isFalse == 0 {
		return passes
	}
	held := ask(p.ask, isFalse)
	for result, effect := range map[int]string{isTrue: Pending, isFalse: p.effect, fails: Deny} { // in any order
		if held&result != 0 {
			possible[effect] = true
		}
	}
	return passes
}

// describeConditions describes the result of the conditions of a policy whose globs fit.
func (p *policy) describeConditions(v *verdict) string {
	source := func() string { return quoted(p.condition(v.condition).Source()) }
	switch {
	case v.spent():
		return fmt.Sprintf("%s, %s, was not evaluated: %s", v.condition, source(), v.err)
	case v.err != nil && !v.matched:
		return fmt.Sprintf("when, %s, failed, and a policy that can only allow does not match then: %s",
			source(), visible.Clip(v.err.Error(), maxFailed))
	case v.err != nil:
		return fmt.Sprintf("%s, %s, failed, which denies: %s", v.condition, source(), visible.Clip(v.err.Error(), maxFailed))
	case !v.matched:
		return fmt.Sprintf("when, %s, is false", source())
	case v.condition != "":
		return fmt.Sprintf("%s, %s, is true, which says %s", v.condition, source(), v.effect)
	}
	return "its effect is " + v.effect
}

func (p *policy) condition(key string) *condition.Program {
	switch key {
	case "when":
		return p.when
	case "deny":
		return p.deny
	}
	return p.ask
}

// quoted puts a text into quotes that it does not contain, if there are such.
func quoted(text string) string {
	quote := `"`
	if strings.Contains(text, quote) && !strings.Contains(text, "`") {
		quote = "`"
	}
	return quote + visible.Clip(text, maxQuoted) + quote
}
