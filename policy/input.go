package policy

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy/canonical"
	"pgfsm/policy/screen"
)

// Kinds of request, as traces name them.
const (
	KindAsk   = "ask"   // a question; a planner makes the plan
	KindCall  = "call"  // the request is the plan: an operator's call
	KindAgent = "agent" // the request is the plan: a tools/call that an agent sent to the gateway
)

// kindRound is the kind of an agent's answers to the server's questions, sent beside the arguments of a call. Rules for
// questions and rules for agents judge them.
const kindRound = "round"

// Input is the input policy (INV-0). It contains the default rules, so that the defaults of a later version do not change the
// meaning of an old trace.
type Input struct {
	MaxBytes int         `json:"max_bytes"`
	Rules    []InputRule `json:"rules"`
}

// An InputRule refuses requests of some kinds.
type InputRule struct {
	screen.Rule
	On []string `json:"on"` // [KindAsk], [KindCall], [KindAgent]: at least one, each once
}

// Equal reports whether two rules are the same.
func (r InputRule) Equal(o InputRule) bool { return r.Rule == o.Rule && slices.Equal(r.On, o.On) }

// judges reports whether the rule applies to requests of a kind.
func (r InputRule) judges(kind string) bool {
	if kind == kindRound {
		return slices.Contains(r.On, KindAsk) || slices.Contains(r.On, KindAgent)
	}
	return slices.Contains(r.On, kind)
}

// DefaultRules returns the built-in input rules. They are for questions.
func DefaultRules() []InputRule {
	var rules []InputRule
	for _, r := range screen.Defaults() {
		rules = append(rules, InputRule{r, []string{KindAsk}})
	}
	return rules
}

// screens holds the rules for each kind of request. A kind of call without rules has no screen.
type screens map[string]*screen.Screen

// compile checks the rules as a whole and compiles them for each kind.
func (i Input) compile() (screens, error) {
	errs := []error{within("input.max_bytes", int64(i.MaxBytes), MaxInputBytes)}
	all := make([]screen.Rule, len(i.Rules))
	for n, r := range i.Rules {
		all[n] = r.Rule
		if len(r.On) == 0 {
			errs = append(errs, fmt.Errorf("input rule %d (id %q) is on no kind of request", n, r.ID))
		}
		for at, kind := range r.On {
			if kind != KindAsk && kind != KindCall && kind != KindAgent || slices.Contains(r.On[:at], kind) {
				errs = append(errs, fmt.Errorf("input rule %d (id %q) is on %q; want ask, call and agent, each at most once", n, r.ID, clip(kind)))
			}
		}
	}
	whole, err := screen.Compile(all, i.MaxBytes)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	compiled := make(screens)
	for _, kind := range []string{KindAsk, KindCall, KindAgent, kindRound} {
		var rules []screen.Rule
		for _, r := range i.Rules {
			if r.judges(kind) {
				rules = append(rules, r.Rule)
			}
		}
		switch {
		case len(rules) == 0 && (kind == KindCall || kind == KindAgent):
			continue
		case len(rules) == len(all):
			compiled[kind] = whole
			continue
		}
		if compiled[kind], err = screen.Compile(rules, i.MaxBytes); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

// Screen judges a question before anything else happens (INV-0).
func (b *Bundle) Screen(question string) Verdict { return b.screened(KindAsk, question) }

// ScreenCall judges a call before anything else happens (INV-0): the size of its arguments, the rules for its kind and, for
// an agent's call, the rules for its round. text is the plan as it was sent.
func (b *Bundle) ScreenCall(kind string, text, round []byte) Verdict {
	if size := argumentsBytes(text); size > b.content.Limits.ArgumentsBytes {
		return blocked(GateInput, CodeArgumentsTooLarge, fmt.Sprintf("The arguments have %d bytes; at most %d are accepted.",
			size, b.content.Limits.ArgumentsBytes))
	}
	v := allowed(GateInput, "No input rule judges calls of this kind.")
	if b.screens[kind] != nil {
		v = b.screened(kind, canonical.Strings(nil, text)...) // unescaped, so that an escape hides no word
	}
	if v.Allows() && len(round) > 0 {
		v = b.screened(kindRound, canonical.Strings(nil, round)...)
	}
	return v
}

// argumentsBytes returns the size of a call's arguments in canonical form, or of the whole text without arguments: the plan
// gate refuses what is not strict JSON.
func argumentsBytes(text []byte) int {
	plan, err := canonical.JSON(text)
	if err != nil {
		return len(text)
	}
	for name, value := range canonical.Members(plan) {
		if name == "args" {
			return len(value)
		}
	}
	return len(text)
}

func (b *Bundle) screened(kind string, texts ...string) Verdict {
	if hit := b.screens[kind].Judge(texts...); hit != nil {
		reason := hit.Reason
		if hit.RuleID != "" {
			reason = fmt.Sprintf("Input rule %q: %s", hit.RuleID, hit.Reason)
		}
		return blocked(GateInput, Code(hit.Code), reason)
	}
	return allowed(GateInput, "No input rule matched.")
}
