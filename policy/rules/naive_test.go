package rules

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
)

func mustCompile(tb testing.TB, policies ...Policy) *Set {
	tb.Helper()
	s, err := Compile(Content{Policies: policies})
	if err != nil {
		tb.Fatalf("Compile() = %v, want no error", err)
	}
	return s
}

// fresh returns a subject that nothing has looked at.
func fresh(in condition.Input) *condition.Subject { return condition.NewSubject(&in) }

// call is a call to pay of billing in prod.
func call(args string) condition.Input {
	return condition.Input{Server: "billing", Tool: "pay", Env: "prod", Args: []byte(args), Now: "2026-11-21T00:00:00Z"}
}

// emptyIsNil treats no list and an empty one alike.
var emptyIsNil = cmpopts.EquateEmpty()

// A naive model is the package comment, word by word, without an index and without anything kept from one call to the
// next but conditions. open makes it forget what failures mean, to show that the properties notice.
type naive struct {
	programs map[string]*condition.Program
	globs    map[string]*glob.Glob
	open     bool
}

func newNaive() *naive {
	return &naive{programs: map[string]*condition.Program{}, globs: map[string]*glob.Glob{}}
}

func (n *naive) fits(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	if n.globs[pattern] == nil {
		g, err := glob.Compile(pattern)
		if err != nil {
			panic(err)
		}
		n.globs[pattern] = g
	}
	return n.globs[pattern].Match(text)
}

func (n *naive) asks(source string, otherwise bool, in condition.Input) (bool, error) {
	if source == "" {
		return otherwise, nil
	}
	if n.programs[source] == nil {
		env, err := condition.PolicyEnv()
		if err != nil {
			panic(err)
		}
		if n.programs[source], err = env.Bool(source); err != nil {
			panic(err)
		}
	}
	yes, err := n.programs[source].True(fresh(in))
	if n.open {
		return yes && err == nil, nil
	}
	return yes, err
}

// one is what a policy says: effect "" if it does not match.
func (n *naive) one(p Policy, in condition.Input) (effect, condition string, err error) {
	if !n.fits(p.Match.Server, in.Server) || !n.fits(p.Match.Tool, in.Tool) || !n.fits(p.Match.Env, in.Env) {
		return "", "", nil
	}
	when, err := n.asks(p.When, true, in)
	if err != nil && p.Effect == Allow && p.Deny == "" && p.RequireApprovalIf == "" {
		return "", "", nil
	}
	if err != nil {
		return Deny, "when", err
	}
	if !when {
		return "", "", nil
	}
	if deny, err := n.asks(p.Deny, false, in); deny || err != nil {
		return Deny, "deny", err
	}
	if ask, err := n.asks(p.RequireApprovalIf, false, in); err != nil {
		return Deny, "require_approval_if", err
	} else if ask {
		return Pending, "require_approval_if", nil
	}
	return p.Effect, "", nil
}

// decide leaves the reason out.
func (n *naive) decide(policies []Policy, in condition.Input) Decision {
	d := Decision{Effect: Deny}
	for _, p := range policies {
		effect, condition, err := n.one(p, in)
		failed := ""
		if err != nil {
			failed = CodeFailed + ": " + err.Error()
		}
		switch {
		case effect == "":
		case p.Mode == Shadow:
			d.Shadow = append(d.Shadow, ShadowDecision{Policy: p.ID, Effect: effect, Condition: condition, Failed: failed})
		default:
			d.Policy, d.Effect, d.Condition, d.Failed = p.ID, effect, condition, failed
			if effect == Pending {
				d.Approvers, d.Quorum, d.Expires = p.Approvers, max(p.Quorum, 1), DefaultExpires
			}
			return d
		}
	}
	return d
}

// The alphabet of random policies and calls: small, so that much fits and much overlaps.
var (
	someGlobs = []string{"", "*", "a", "b", "ab", "a*", "*a", "?", "a?", "?b", "*b*", "a*b", "??", "aa*", "b*a", "éa",
		"*é"}
	someNames = []string{"a", "b", "ab", "ba", "aa", "bb", "aab", "bba", "abab", "é", "éa", "aé", "\xff", "a\xffb", ""}
	someArgs  = []string{`{}`, `{"n":1}`, `{"n":-1}`, `{"n":"text"}`, `{"n":null}`, `{"n":[1]}`, `{"m":true,"n":2.5}`,
		`{"m":false}`}
	// conditions that are true, false, or fail, by the arguments or always
	someConditions = []string{"true", "false", failing, "args.n > 0", "args.n == 1", "!has(args.n)", "args.m == true",
		"has(args.m) && args.n > 0", "risk.score >= 50", "env == 'a'", "args.n > 0 || tool == 'a'"}
)

// failing reads well and fails whatever the call is.
const failing = "args.no_such_argument == 1"

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomPolicy returns a policy that compiles. Half of the conditions are not written.
func randomPolicy(r *rand.Rand, i int) Policy {
	p := Policy{ID: fmt.Sprintf("p%d", i), Match: randomMatch(r), Effect: pick(r, []string{Allow, Allow, Deny, Pending})}
	maybe := func(to *string) {
		if r.IntN(2) == 0 {
			*to = pick(r, someConditions)
		}
	}
	maybe(&p.When)
	if p.Effect == Allow {
		maybe(&p.Deny)
		maybe(&p.RequireApprovalIf)
	}
	if r.IntN(4) == 0 {
		p.Mode = Shadow
	}
	if p.holds() && r.IntN(2) == 0 {
		p.Approvers, p.Quorum = []string{"x", "y"}, 2
	}
	return p
}

func randomMatch(r *rand.Rand) Match {
	some := func() string {
		if r.IntN(2) == 0 {
			return ""
		}
		return pick(r, someGlobs)
	}
	return Match{Server: some(), Tool: some(), Env: some()}
}

func randomPolicies(r *rand.Rand, most int) []Policy {
	policies := make([]Policy, 1+r.IntN(most))
	for i := range policies {
		policies[i] = randomPolicy(r, i)
	}
	return policies
}

func randomCall(r *rand.Rand) condition.Input {
	return condition.Input{Server: pick(r, someNames), Tool: pick(r, someNames), Env: pick(r, someNames),
		Args: []byte(pick(r, someArgs)),
		Now:  "2026-11-21T00:00:00Z", Risk: condition.Risk{Score: r.IntN(100), Mode: "review"}}
}

// describe shows policies on one line each.
func describe(policies []Policy) string {
	var b strings.Builder
	for _, p := range policies {
		fmt.Fprintf(&b, "%+v\n", p)
	}
	return b.String()
}

// equal compares everything but reasons.
func equal(a, b Decision) bool {
	a.Reason, b.Reason = "", ""
	return cmp.Equal(a, b, emptyIsNil)
}

// A decider decides about one call by a list of policies.
type decider func(policies []Policy, in condition.Input) Decision

// compiled decides as the package does. It keeps the last set, since properties ask for several calls of one.
func compiled(tb testing.TB) decider {
	var last []Policy
	var set *Set
	return func(policies []Policy, in condition.Input) Decision {
		if set == nil || !cmp.Equal(last, policies) {
			last, set = slices.Clone(policies), mustCompile(tb, policies...)
		}
		return set.Decide(fresh(in))
	}
}

var errCounterexample = errors.New("counterexample")

func counterexample(policies []Policy, in condition.Input, format string, args ...any) error {
	return fmt.Errorf("%w: %s\ncall %+v\n%s", errCounterexample, fmt.Sprintf(format, args...), in, describe(policies))
}
