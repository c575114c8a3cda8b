package rules

import (
	"fmt"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/glob"
	"pgfsm/policy/visible"
)

// Considered is one policy that was asked, and what came of it.
type Considered struct {
	Matched bool   `json:"matched"`
	Policy  string `json:"policy"` // its id
	Shadow  bool   `json:"shadow"` // it is on trial: that it matched decided nothing
	Why     string `json:"why"`    // half a sentence: why it matched and what it says, or why it did not match
}

// maxShown is how many bytes of a name or a condition are shown in an explanation.
const maxShown = 200

// Explain is [Set.Decide] with every policy that it considered: from the first to the one that decided, or all. It
// looks at each in turn and uses no index, so it also is what Decide is held to.
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

// misfit says which glob does not fit, or nothing.
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

// why says what the conditions of a policy whose globs fit came to.
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

// quoted shows a text in quotes that do not stand in it, if there are such.
func quoted(text string) string {
	quote := `"`
	if strings.Contains(text, quote) && !strings.Contains(text, "`") {
		quote = "`"
	}
	return quote + visible.Clip(text, maxShown) + quote
}
