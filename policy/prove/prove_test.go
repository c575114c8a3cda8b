package prove_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
)

// TestProofsHoldForRandomCalls compares proofs with calls from a generator that knows no cells.
func TestProofsHoldForRandomCalls(t *testing.T) {
	calls := rounds(400, 10_000)
	count := map[string]int{}
	reasons := map[string]int{}
	for seed := range rounds(100, 2_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 38))
		schema := randomSchema(r)
		identity := func(c *policy.Content) {
			c.Roles = []policy.Role{{Role: "admin", Actors: []string{"bob", "group:ops"}}, {Role: "staff", Actors: []string{"local:ann", "https://idp#bob"}},
				{Role: "tool1", Actors: []string{"bob", "local:ann"}}}
		}
		risks := randomRisk(r)
		f := newFixture(t, func(c *policy.Content) { identity(c); c.Policy, c.Risk = randomPolicies(r), risks }, schema, schema)
		old := newFixture(t, func(c *policy.Content) {
			identity(c)
			c.Risk = risks
			if r.IntN(3) == 0 {
				c.Risk = randomRisk(r)
			}
			c.Policy = &rules.Content{Policies: slices.Clone(f.content.Policy.Policies)}
			switch r.IntN(4) {
			case 0:
				c.Policy = randomPolicies(r)
			case 1:
				i := r.IntN(len(c.Policy.Policies))
				c.Policy.Policies = slices.Delete(c.Policy.Policies, i, i+1)
			case 2:
				i := r.IntN(len(c.Policy.Policies))
				c.Policy.Policies[i].When = randomCondition(r, 1)
			}
		}, schema, schema)
		claims := randomClaims(r, old.bundle)
		results := f.prove(t, claims...)
		for i := range results {
			result := &results[i]
			count[claims[i].Kind+" "+result.Status]++
			if result.Status == prove.Unknown {
				reasons[strings.SplitN(result.Reason, ":", 2)[0]]++
			}
			if strings.Contains(result.Reason, "internal error") {
				t.Errorf("seed %d, %s %s: %s\n%s", seed, claims[i].Kind, claims[i].Effect, result.Reason, describe(f, schema, &claims[i]))
			}
			if result.Call != nil {
				checkCall(t, f, &claims[i], result)
			}
		}
		for range calls {
			args := randomArguments(r)
			live, _ := f.catalog.Find("pay", "tool0")
			if schema != "" && live.Input().Judge(args) != nil {
				continue
			}
			in := randomInput(r, f.bundle, args, fmt.Sprint("tool", r.IntN(2)), schema != "")
			for i := range results {
				settled := results[i].Status == prove.Proved && claims[i].Kind != prove.Reachable ||
					results[i].Status == prove.Refuted && claims[i].Kind == prove.Reachable
				if settled && concerns(f.bundle, &claims[i], in) {
					count["contradicted"]++
					t.Fatalf("seed %d: %s of %+v is contradicted by %s of %+v\n%s", seed, results[i].Status, claims[i], args,
						in.Actor, describe(f, schema, &claims[i]))
				}
			}
		}
	}
	t.Logf("results: %v; unknown: %v", count, reasons)
	for _, kind := range []string{prove.Never, prove.Always, prove.Reachable, prove.Implies, prove.Equivalent} {
		for _, status := range []string{prove.Proved, prove.Refuted} {
			if count[kind+" "+status] == 0 {
				t.Errorf("no claim of the kind %s was %s, so the test shows nothing about it", kind, status)
			}
		}
	}
}

// TestBruteForce compares the results of claims with every call of a small schema, by every caller of a few.
func TestBruteForce(t *testing.T) {
	const schema = `{"type":"object","properties":{"m":{"enum":["a","ab","x",""]},"n":{"type":"integer","minimum":4,"maximum":6},"s":{"type":["boolean","null"]}},"additionalProperties":false}`
	var arguments [][]byte
	for _, m := range []string{"", `"m":"a"`, `"m":"ab"`, `"m":"x"`, `"m":""`} {
		for _, n := range []string{"", `"n":4`, `"n":5`, `"n":6`, `"n":5.0`, `"n":6.0`, `"n":4.0`} {
			for _, s := range []string{"", `"s":true`, `"s":false`, `"s":null`} {
				members := slices.DeleteFunc([]string{m, n, s}, func(one string) bool { return one == "" })
				arguments = append(arguments, []byte("{"+strings.Join(members, ",")+"}"))
			}
		}
	}
	count := map[string]int{}
	for seed := range rounds(100, 100_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 39))
		roles := []policy.Role{{Role: "admin", Actors: []string{"bob"}}}
		risks := randomRisk(r)
		f := newFixture(t, func(c *policy.Content) { c.Roles, c.Policy, c.Risk = roles, randomPolicies(r), risks }, schema)
		old := newFixture(t, func(c *policy.Content) { c.Roles, c.Policy, c.Risk = roles, randomPolicies(r), risks }, schema)
		var inputs []*condition.Input
		for _, args := range arguments {
			for _, actor := range []string{"bob", "agent"} {
				in := &condition.Input{Server: "pay", Tool: "tool0", Env: "prod", Args: args, Pinned: true, Now: "2026-05-05T10:00:00.000Z"}
				in.Actor = f.bundle.ConditionActor(actor, nil)
				inputs = append(inputs, in)
			}
		}
		claims := randomClaims(r, old.bundle)
		for i, result := range f.prove(t, claims...) {
			count[result.Status]++
			found := slices.IndexFunc(inputs, func(in *condition.Input) bool { return concerns(f.bundle, &claims[i], in) })
			if result.Call != nil {
				checkCall(t, f, &claims[i], &result)
			}
			if found >= 0 && result.Call == nil && result.Status != prove.Unknown {
				t.Fatalf("seed %d: %s of %+v is contradicted by %s of %s\n%s", seed, result.Status, claims[i], inputs[found].Args,
					inputs[found].Actor.ID, describe(f, schema, &claims[i]))
			}
		}
	}
	t.Logf("results: %v", count)
}

func randomClaims(r *rand.Rand, old *policy.Bundle) []prove.Claim {
	when := ""
	if r.IntN(2) == 0 {
		when = randomCondition(r, 1)
	}
	effect := func() string { return []string{"allow", "pending", "deny"}[r.IntN(3)] }
	return []prove.Claim{
		{ID: "never", Kind: prove.Never, Effect: effect(), When: when},
		{ID: "always", Kind: prove.Always, Effect: effect(), Quorum: r.IntN(3), When: when},
		{ID: "reachable", Kind: prove.Reachable, Effect: effect(), When: when},
		{ID: "implies", Kind: prove.Implies, Old: old},
		{ID: "equivalent", Kind: prove.Equivalent, Old: old},
	}
}

func describe(f *fixture, schema string, c *prove.Claim) string {
	text := fmt.Sprintf("schema %s\nclaim %+v\n", schema, *c)
	for _, p := range f.content.Policy.Policies {
		text += fmt.Sprintf("policy %+v\n", p)
	}
	if c.Old != nil {
		for _, p := range c.Old.Content().Policy.Policies {
			text += fmt.Sprintf("old policy %+v\n", p)
		}
		if c.Old.Content().Risk != nil {
			text += fmt.Sprintf("old risk %+v\n", *c.Old.Content().Risk)
		}
	}
	if f.content.Risk != nil {
		text += fmt.Sprintf("risk %+v\n", *f.content.Risk)
	}
	return text
}

// concerns says by the gates themselves whether a call is what a claim looks for.
func concerns(b *policy.Bundle, c *prove.Claim, in *condition.Input) bool {
	now := assess(b, in)
	if c.Kind == prove.Implies || c.Kind == prove.Equivalent {
		other := *in
		before := assess(c.Old, &other)
		return isLooser(now, before) || c.Kind == prove.Equivalent && isLooser(before, now)
	}
	if c.When != "" {
		when := compile(c.When)
		subject := condition.NewSubject(in)
		subject.WithRisk(condition.Risk{Mode: riskMode(b, now), Score: now.Score, Rules: riskNames(now)})
		yes, err := when.True(subject)
		if !yes && (err == nil || c.Kind == prove.Reachable) {
			return false
		}
	}
	effect := effectOf(now)
	if c.Kind != prove.Always {
		return effect == c.Effect
	}
	if c.Effect == rules.Pending {
		return effect == rules.Allow || effect == rules.Pending && now.Quorum < c.Quorum
	}
	return effect != c.Effect
}

// compiled are the conditions of claims by their source: each is asked about many calls.
var compiled sync.Map

func compile(source string) *condition.Program {
	if known, ok := compiled.Load(source); ok {
		return known.(*condition.Program)
	}
	env, err := condition.PolicyEnv()
	if err != nil {
		panic(err)
	}
	program, err := env.Bool(source)
	if err != nil {
		panic(err)
	}
	compiled.Store(source, program)
	return program
}

func riskMode(b *policy.Bundle, a policy.Assessment) string {
	if b.Content().Risk == nil {
		return ""
	}
	return a.Mode
}

func riskNames(a policy.Assessment) (names []string) {
	for _, c := range a.Risk {
		if c.Matched && c.Rule != "set_mode_by_score" {
			names = append(names, c.Rule)
		}
	}
	return names
}

func isLooser(x, than policy.Assessment) bool {
	order := map[string]int{rules.Deny: 0, rules.Pending: 1, rules.Allow: 2}
	if effectOf(x) != effectOf(than) {
		return order[effectOf(x)] > order[effectOf(than)]
	}
	terms := func(a policy.Assessment) *ruling.Ruling {
		return &ruling.Ruling{Decision: effectOf(a), Approvers: a.Approvers, Quorum: a.Quorum, Expires: a.Expires, Fresh: a.Fresh}
	}
	changes := ruling.Changes(terms(than), terms(x))
	return effectOf(x) == rules.Pending && (slices.Contains(changes, ruling.HoldWeakened) || slices.Contains(changes, ruling.HoldChanged))
}

// checkCall holds the call of a result to the gates.
func checkCall(t *testing.T, f *fixture, c *prove.Claim, result *prove.Result) {
	t.Helper()
	call := result.Call
	live, _ := f.catalog.Find(call.Server, call.Tool)
	if call.Pinned {
		if err := live.Input().Judge(call.Args); err != nil {
			t.Errorf("the call of %s has the arguments %s, which the schema refuses: %v", c.ID, call.Args, err)
		}
	}
	if !concerns(f.bundle, c, call.Input(f.bundle)) {
		t.Errorf("the call %s does not show %+v", call.Args, *c)
	}
}
