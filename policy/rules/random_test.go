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
