package policy

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/policy/redact"
	"pgfsm/policy/screen"
)

// Kinds of request, as traces name them.
const (
	KindAsk   = "ask"   // a question; a planner makes the plan
	KindCall  = "call"  // the request is the plan: an operator's call
	KindAgent = "agent" // the request is the plan: a tools/call that an agent sent to the gateway

	// The request is the plan, and somebody else makes the call if pgfsm permits it.
	KindHook       = "hook"       // a coding agent's hook asks before the agent makes the call
	KindEvaluation = "evaluation" // a policy enforcement point asks (AuthZEN 1.0)
)

// kindRound is the kind of an agent's answers to the server's questions, sent beside the arguments
// of a call. Rules for questions and rules for agents judge them.
const kindRound = "round"

// Input is the input policy (INV-0). It contains the default rules, so that the defaults of a later
// version do not change the meaning of an old trace.
type Input struct {
	MaxBytes int         `json:"max_bytes"`
	Rules    []InputRule `json:"rules"`
}

// An InputRule refuses requests of some kinds.
type InputRule struct {
	screen.Rule
	// Detectors of package redact in place of the pattern, which is empty then.
	Find []string `json:"find,omitempty"`
	On   []string `json:"on"` // [KindAsk], [KindCall], [KindAgent]: at least one, each once
}

// Equal reports whether two rules are the same.
func (r InputRule) Equal(o InputRule) bool {
	return r.Rule == o.Rule && slices.Equal(r.Find, o.Find) && slices.Equal(r.On, o.On)
}

// judgesKnownKinds reports whether the rule names kinds of request, and no others.
func (r InputRule) judgesKnownKinds() bool {
	kinds := []string{KindAsk, KindCall, KindAgent}
	return len(r.On) > 0 && !slices.ContainsFunc(r.On, func(on string) bool { return !slices.Contains(kinds, on) })
}

// appliesTo reports whether the rule applies to requests of a kind.
func (r InputRule) appliesTo(kind string) bool {
	if kind == kindRound {
		return slices.Contains(r.On, KindAsk) || slices.Contains(r.On, KindAgent)
	}
	return slices.Contains(r.On, kind)
}

// DefaultRules returns the built-in input rules. They are for questions.
func DefaultRules() []InputRule {
	var rules []InputRule
	for _, r := range screen.Defaults() {
		rules = append(rules, InputRule{Rule: r, On: []string{KindAsk}})
	}
	return rules
}

// screens holds the rules for each kind of request. A kind of call without rules has no screen.
type screens map[string]*screen.Screen

// compileScreens checks the rules as a whole and compiles them for each kind.
func (i Input) compileScreens() (screens, error) {
	errs := []error{checkBound("input.max_bytes", int64(i.MaxBytes), MaxInputBytes)}
	var inputRules []screen.Rule

	for _, r := range i.Rules {
		if len(r.Find) == 0 {
			inputRules = append(inputRules, r.Rule)
		}
		if !r.judgesKnownKinds() { // a rule that judges nothing would let through what it names
			errs = append(errs, fmt.Errorf("input rule %q: on has the kinds %s, %s and %s, at least one",
				r.ID, KindAsk, KindCall, KindAgent))
		}
	}

	// All rules together must fit the limits, whatever kinds they judge.
	allRules, err := screen.Compile(inputRules, i.MaxBytes)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}

	compiled := make(screens)
	for _, kind := range []string{KindAsk, KindCall, KindAgent, kindRound} {
		var rules []screen.Rule
		for _, r := range i.Rules {
			if r.appliesTo(kind) && len(r.Find) == 0 {
				rules = append(rules, r.Rule)
			}
		}
		switch {
		case len(rules) == 0 && (kind == KindCall || kind == KindAgent):
			continue
		case len(rules) == len(inputRules):
			compiled[kind] = allRules
			continue
		}
		if compiled[kind], err = screen.Compile(rules, i.MaxBytes); err != nil {
			return nil, err
		}
	}

	return compiled, nil
}

// compileFinders compiles the rules with detectors for each kind.
func (i Input) compileFinders() (map[string]*redact.Set, error) {
	compiled := make(map[string]*redact.Set)
	for _, kind := range []string{KindAsk, KindCall, KindAgent, kindRound} {
		var rules []redact.Rule
		for _, r := range i.Rules {
			if len(r.Find) > 0 && r.Pattern != "" {
				return nil, fmt.Errorf("input rule %q has a pattern and detectors", r.ID)
			}
			if len(r.Find) > 0 && r.appliesTo(kind) {
				rules = append(rules, redact.Rule{ID: r.ID, Find: r.Find})
			}
		}
		if len(rules) == 0 {
			continue
		}
		var err error
		if compiled[kind], err = redact.Compile(rules); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
	}
	return compiled, nil
}

// Screen judges a question before anything else happens (INV-0).
func (b *Bundle) Screen(question string) Verdict {
	v := b.screenTexts(KindAsk, question)
	if v.Allows() {
		v = b.find(v, b.finders[KindAsk].Text(question))
	}
	return v
}

// ScreenCall judges a call before anything else happens (INV-0): the rules for its kind and, for an
// agent's call, the rules for its round. text is the plan as it was sent. A call whose arguments
// are too large is blocked before a rule reads it.
func (b *Bundle) ScreenCall(kind string, text, round []byte) Verdict {
	if _, large := b.CutArguments(text); large != nil {
		return b.ScreenLarge(large)
	}
	v := allowedBy(GateInput, "No input rule judges calls of this kind.")
	if b.screens[kind] != nil {
		v = b.screenTexts(kind, canonical.Strings(nil, text)...) // unescaped, so that an escape hides no word
	}
	if v.Allows() {
		v = b.find(v, b.finders[kind].Data(text))
	}
	if v.Allows() && len(round) > 0 {
		v = b.screenTexts(kindRound, canonical.Strings(nil, round)...)
	}
	if v.Allows() && len(round) > 0 {
		v = b.find(v, b.finders[kindRound].Data(round))
	}
	return v
}

// find returns the verdict v, or blocks what a rule's detectors found.
func (b *Bundle) find(v Verdict, found redact.Done) Verdict {
	switch {
	case len(found.Hits) > 0:
		i := slices.IndexFunc(b.content.Input.Rules, func(r InputRule) bool { return r.ID == found.Hits[0].Rule })
		return blockedBy(GateInput, screen.CodeDenied, inputReason(b.content.Input.Rules[i].Rule))
	case found.Withheld: // it is not JSON, so no gate can read it either
		return blockedBy(GateInput, screen.CodeDenied, "The input cannot be searched: "+found.Why+".")
	}
	return v
}

func inputReason(r screen.Rule) string { return fmt.Sprintf("Input rule %q: %s", r.ID, r.Reason) }

// MaxArgumentsValues bounds the values in the arguments of a call: members and elements at every
// depth. Gates need memory for each.
const MaxArgumentsValues = 50_000

// maxCutPlan bounds the record of a plan without its arguments, in bytes. The gateway bounds the
// names of an agent's call to less.
const maxCutPlan = 64 << 10

// TooManyValues reports whether arguments have more than [MaxArgumentsValues] values.
func TooManyValues(args []byte) bool {
	if len(args) <= MaxArgumentsValues { // a value has a byte at least
		return false
	}
	values, _ := canonical.Outline(args)
	return values > MaxArgumentsValues
}

// LargeArguments stand for arguments that are refused for their size and so not recorded. Its
// members are in canonical order.
type LargeArguments struct {
	Bytes  int              `json:"bytes"`
	Digest canonical.Digest `json:"digest"` // the digest of the bytes as they were sent
	Values int              `json:"values"`
}

// CutArguments removes the arguments from a plan if they are too large: if they have more bytes
// than limits.arguments_bytes, as sent, or more than [MaxArgumentsValues] values. It returns the
// plan without them, and what stands for them; nil if the arguments are not too large. A plan
// without an object of arguments counts as a whole: the plan gate refuses it.
func (b *Bundle) CutArguments(plan []byte) (withoutArgs []byte, large *LargeArguments) {
	limit := b.content.Limits.ArgumentsBytes
	if len(plan) <= limit && !TooManyValues(plan) {
		return plan, nil
	}
	withoutArgs, args := canonical.Cut(plan, "args")
	if len(withoutArgs) > maxCutPlan {
		withoutArgs, args = nil, plan
	}
	values, _ := canonical.Outline(args)
	large = &LargeArguments{Bytes: len(args), Values: values}
	if !b.TooLarge(large) {
		return plan, nil
	}
	large.Digest = canonical.Sum("large arguments", args)
	return withoutArgs, large
}

// TooLarge reports whether the bundle refuses such arguments for their size.
func (b *Bundle) TooLarge(args *LargeArguments) bool {
	return args.Bytes > b.content.Limits.ArgumentsBytes || args.Values > MaxArgumentsValues
}

// ScreenLarge blocks a call whose arguments were cut.
func (b *Bundle) ScreenLarge(large *LargeArguments) Verdict {
	size, limit, unit := large.Bytes, b.content.Limits.ArgumentsBytes, "bytes"
	if size <= limit {
		size, limit, unit = large.Values, MaxArgumentsValues, "values"
	}
	return blockedBy(GateInput, CodeArgumentsTooLarge,
		fmt.Sprintf("The arguments have %d %s; at most %d are accepted.", size, unit, limit))
}

func (b *Bundle) screenTexts(kind string, texts ...string) Verdict {
	if hit := b.screens[kind].Judge(texts...); hit != nil {
		reason := hit.Reason
		if hit.RuleID != "" {
			reason = inputReason(screen.Rule{ID: hit.RuleID, Reason: hit.Reason})
		}
		return blockedBy(GateInput, Code(hit.Code), reason)
	}
	return allowedBy(GateInput, "No input rule matched.")
}
