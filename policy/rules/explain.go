package rules

import (
	"fmt"
	"strings"

	"pgfsm/internal/glob"
	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// Considered is one policy that was evaluated, and its result.
type Considered struct {
	Matched bool   `json:"matched"`
	Policy  string `json:"policy"` // its id
	Shadow  bool   `json:"shadow"` // it is on trial: that it matched decided nothing
	Why     string `json:"why"`    // half a sentence: why it matched and what it says, or why it did not match
}

// maxQuoted is the longest quoted name or condition in an explanation, in bytes.
const maxQuoted = 200

// Explain is [Set.Decide] with every policy that it considered: from the first to the one that decided, or all.
func (s *Set) Explain(sub *condition.Subject) (Decision, []Considered) {
	d := Decision{Effect: Deny, Reason: noMatch}
	if s == nil || sub == nil {
		return d, nil
	}
	in := sub.Input()
	var all []Considered
	for i := range s.policies {
		p := &s.policies[i]
		c := Considered{Policy: p.id, Shadow: p.shadow, Why: p.misfit(&in)}
		if c.Why != "" {
			all = append(all, c)
			continue
		}
		v := p.judge(sub)
		c.Matched, c.Why = v.matched, p.why(&v)
		all = append(all, c)
		switch {
		case v.matched && p.shadow:
			d.Shadow = append(d.Shadow, ShadowDecision{v.condition, v.effect, v.failure(), p.id})
		case v.matched:
			p.decide(&d, v)
			return d, all
		}
	}
	return d, all
}

// Settled reports whether the decision is the same whatever the missing answers about calls before are. Conditions that
// fail once one was missing can come to anything; open says that from the start, for the risk depends on such an answer.
func (s *Set) Settled(sub *condition.Subject, open bool) bool {
	if s == nil || sub == nil {
		return true
	}
	in := sub.Input()
	can := make(map[string]bool) // the effects
	// ask returns what a condition can come to, and whether it fails for certain.
	ask := func(c *condition.Program) (yes, no, failed bool) {
		if c == nil {
			return false, true, false
		}
		before := sub.Missing()
		is, err := c.True(sub)
		if err != nil && (open || sub.Missing() > before) {
			return true, true, false
		}
		return is && err == nil, !is && err == nil, err != nil
	}
	for i := range s.policies {
		p := &s.policies[i]
		if p.shadow || !p.fits(&in) {
			continue
		}
		passes := false // the policy may not match
		if p.when != nil {
			yes, no, failed := ask(p.when)
			if (failed || yes && no) && p.strict || sub.Spent() {
				can[Deny] = true
			}
			if passes = no || failed && !p.strict; failed && p.strict {
				return len(can) == 1
			} else if !yes {
				continue
			}
		}
		deny, goesOn, failed := ask(p.deny)
		if deny || failed {
			can[Deny] = true
		}
		if goesOn {
			yes, no, failed := ask(p.ask)
			if failed || yes && no {
				can[Deny] = true
			}
			if yes {
				can[Pending] = true
			}
			if no {
				can[p.effect] = true
			}
		}
		if !passes {
			return len(can) == 1
		}
	}
	can[Deny] = true // no policy matches
	return len(can) == 1
}

// misfit describes the glob that does not fit; empty if all do.
func (p *policy) misfit(in *condition.Input) string {
	for _, one := range [...]struct {
		what string
		glob *glob.Glob
		text string
	}{{"server", p.server, in.Server}, {"tool", p.tool, in.Tool}, {"environment", p.env, in.Env}} {
		if one.glob != nil && !one.glob.Match(one.text) {
			return fmt.Sprintf("the %s %s is not %s", one.what, quoted(one.text), quoted(one.glob.String()))
		}
	}
	return ""
}

// why describes the result of the conditions of a policy whose globs fit.
func (p *policy) why(v *verdict) string {
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
