package prove_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// object returns a schema whose only argument is a, which is required; with optional it is not.
func object(argument string) string {
	return `{"type":"object","properties":{"a":` + argument + `},"required":["a"]}`
}

func optional(argument string) string { return `{"type":"object","properties":{"a":` + argument + `}}` }

// TestEdges holds proofs to values at the edges of what conditions and schemas say.
func TestEdges(t *testing.T) {
	deny := func(when string) []rules.Policy {
		return []rules.Policy{{ID: "deny", When: when, Effect: rules.Deny}, {ID: "allow", Effect: rules.Allow}}
	}
	allow := func(when string) []rules.Policy {
		return []rules.Policy{{ID: "allow", When: when, Effect: rules.Allow}}
	}
	never := func(when string) prove.Claim {
		return prove.Claim{ID: "c", Kind: prove.Never, Effect: rules.Allow, When: when}
	}
	for _, tt := range []struct {
		name     string
		schema   string
		policies []rules.Policy
		risk     *risk.Content
		claim    prove.Claim
		want     string
	}{
		{"bound-kept", object(`{"type":"integer"}`), deny("args.a > 500"), nil, never("args.a > 500"), prove.Proved},
		{"bound-shifted", object(`{"type":"integer"}`), deny("args.a > 501"), nil, never("args.a > 500"), prove.Refuted},
		{"bound-or-equal", object(`{"type":"integer"}`), deny("args.a > 500"), nil, never("args.a >= 500"), prove.Refuted},
		{"no-integer-between", object(`{"type":"integer"}`), deny("args.a >= 501"), nil, never("args.a > 500"), prove.Proved},
		{"double-between", object(`{"type":"number"}`), deny("args.a >= 501"), nil, never("args.a > 500"), prove.Refuted},
		{"large-number-fails-and-denies", object(`{"type":"number"}`), deny("args.a > 500.0"), nil, never("args.a > 500"), prove.Proved},
		{"large-number-fails-and-is-not-allowed", object(`{"type":"number"}`), allow("!(args.a > 500.0)"), nil, never("args.a > 500"), prove.Proved},
		{"large-number-in-a-text-claim", object(`{}`), allow(`has(args.a)`), nil, never("args.a > 500"), prove.Refuted},
		{"beyond-2-to-53-fails", object(`{"type":"integer"}`), allow("args.a < 10.5 || args.a > 10"), nil,
			never("args.a > 9007199254740992"), prove.Refuted},
		{"unusable-below-the-bound", object(`{"type":"integer","maximum":500}`), allow("true"), nil, never("args.a > 500"), prove.Refuted},
		{"unusable-between-large-bounds", object(`{"type":"integer","minimum":18014398509481984,"maximum":18014398509481986}`), allow("true"), nil,
			never("args.a < 0"), prove.Refuted},
		{"usable-although-large", object(`{"type":"integer","minimum":18014398509481984,"maximum":18014398509481984}`), allow("true"), nil,
			never("args.a < 0"), prove.Proved},
		{"unusable-with-a-point", object(`{"type":"integer","minimum":-1152921504606846976,"maximum":-1152921504606846976}`), allow("true"), nil,
			never("args.a > 0"), prove.Refuted},
		{"unusable-above-all-others", object(`{"type":"integer","exclusiveMinimum":1e30}`), allow("true"), nil, never("args.a < 0"), prove.Refuted},
		{"bounded-by-the-schema", object(`{"type":"integer","minimum":0,"maximum":500}`), allow("true"), nil, never("args.a > 500"), prove.Proved},
		{"bounded-by-a-draft-4-schema", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":500}},"required":["a"]}`,
			allow("true"), nil, never("args.a > 500"), prove.Proved},
		{"absent", optional(`{"type":"integer","minimum":0,"maximum":500}`), allow("true"), nil, never("args.a > 500"), prove.Refuted},
		{"absent-excluded-by-the-claim", optional(`{"type":"integer","minimum":0,"maximum":500}`), allow("true"), nil,
			never("has(args.a) && args.a > 500"), prove.Proved},
		{"null", object(`{"type":["integer","null"],"minimum":0,"maximum":500}`), allow("true"), nil, never("args.a > 500"), prove.Refuted},
		{"null-is-no-text", object(`{"type":["string","null"]}`), deny(`args.a != "x"`), nil, never(`args.a == null`), prove.Proved},
		{"wrong-type-without-schema", "", deny(`args.a == "prod"`), nil, never(`has(args.a) && args.a == "prod"`), prove.Proved},
		{"wrong-type-fails", "", deny(`args.a.startsWith("prod")`), nil, never(`has(args.a) && args.a == 5`), prove.Proved},
		{"lookalike", object(`{"type":"string"}`), deny(`args.a.matches("(?i)^kill$")`), nil, never(`args.a == "Kill"`), prove.Proved},
		{"lookalike-of-another-letter", object(`{"type":"string"}`), deny(`args.a.matches("(?i)^kill$")`), nil, never(`args.a == "κill"`), prove.Refuted},
		{"line-feed-before-the-end", object(`{"type":"string"}`), deny(`args.a.matches("^prod$")`), nil, never(`args.a.startsWith("prod")`), prove.Refuted},
		{"pattern-of-everything", object(`{"type":"string"}`), deny(`args.a.matches("")`), nil, never(`has(args.a)`), prove.Proved},
		{"dot-without-line-feed", object(`{"type":"string"}`), deny(`args.a.matches("^.*$")`), nil, never(`has(args.a)`), prove.Refuted},
		{"pattern-of-the-schema", object(`{"type":"string","pattern":"^[a-z]+$"}`), allow("true"), nil, never(`args.a.contains("/")`), prove.Proved},
		{"pattern-of-the-schema-anywhere", object(`{"type":"string","pattern":"[a-z]+"}`), allow("true"), nil, never(`args.a.contains("/")`), prove.Refuted},
		{"enum", object(`{"enum":["a","b"]}`), allow(`args.a == "a"`), nil, never(`args.a != "a"`), prove.Proved},
		{"enum-number-with-a-point", object(`{"enum":[5]}`), allow("args.a == 5"), nil, never("args.a != 5.0"), prove.Proved},
		{"size", object(`{"type":"string","maxLength":3}`), allow("true"), nil, never("size(args.a) > 3"), prove.Proved},
		{"size-beyond-the-schema", object(`{"type":"string","maxLength":4}`), allow("true"), nil, never("size(args.a) > 3"), prove.Refuted},
		{"empty-list", object(`{"type":"array","items":{"type":"string"}}`), allow(`args.a.all(x, x == "ok")`), nil,
			never(`!args.a.exists(x, x == "ok")`), prove.Refuted},
		{"empty-list-excluded", object(`{"type":"array","items":{"type":"string"},"minItems":1}`), allow(`args.a.all(x, x == "ok")`), nil,
			never(`!args.a.exists(x, x == "ok")`), prove.Proved},
		{"two-elements-of-two-loops", object(`{"type":"array","items":{"type":"string"}}`),
			deny(`args.a.exists(x, x.startsWith("a") && x.endsWith("b"))`), nil,
			never(`args.a.exists(x, x.startsWith("a")) && args.a.exists(x, x.endsWith("b"))`), prove.Refuted},
		{"three-elements", object(`{"type":"array","items":{"type":"integer"}}`), deny("size(args.a) < 3"), nil,
			never("args.a.exists(x, x == 1) && args.a.exists(x, x == 2) && args.a.exists(x, x == 3)"), prove.Refuted},
		{"two-elements-of-three", object(`{"type":"array","items":{"type":"string"}}`), deny("size(args.a) >= 3"), nil,
			never(`args.a.exists(x, x == "1") && args.a.exists(x, x == "2") && args.a.exists(x, x == "3")`), prove.Proved},
		{"element-that-is-unusable", object(`{"type":"array","items":{"type":"integer"}}`), deny("size(args.a) >= 3"), nil,
			never("args.a.exists(x, x == 1) && args.a.exists(x, x == 2) && args.a.exists(x, x == 3)"), prove.Refuted},
		{"loop-over-a-text", object(`{"type":"string"}`), allow(`args.a.all(x, x == "ok")`), nil, never(`args.a != ""`), prove.Proved},
		{"loop-over-an-empty-text", object(`{"type":"string"}`), allow(`args.a.all(x, x == "ok")`), nil, never(`args.a == ""`), prove.Refuted},
		{"loop-over-names", object(`{"type":"object","additionalProperties":true}`), allow(`args.a.exists(x, x == "ok")`), nil,
			never("has(args.a)"), prove.Refuted},
		{"loop-over-names-and-their-number", object(`{"type":"object","additionalProperties":true}`), deny("size(args.a) > 0"), nil,
			never(`!args.a.all(x, x == "ok")`), prove.Unknown},
		{"loop-over-names-and-elements", object(`{}`), deny(`!args.a.all(x, x.endsWith("@example.com"))`), nil,
			never(`args.a.exists(x, x == "eve@evil.com")`), prove.Proved},
		{"loop-over-names-and-a-size", object(`{}`), deny(`!args.a.all(x, x.endsWith("@example.com"))`), nil,
			never(`args.a.exists(x, x == "eve@evil.com") && size(args.a) > 2`), prove.Unknown},
		{"name-that-is-asked", object(`{"type":"object","additionalProperties":true}`), deny(`args.a.exists(x, x == "k")`), nil,
			never(`has(args.a.k)`), prove.Proved},
		{"name-beside-others", object(`{"type":"object","additionalProperties":true}`), deny(`args.a.all(x, x == "k")`), nil,
			never(`has(args.a.k)`), prove.Refuted},
		{"nothing-is-admitted", object(`{"type":"string","enum":[5]}`), allow("true"), nil, never("true"), prove.Unknown},
		{"nothing-is-admitted-and-asked", object(`{"type":"string","enum":[5]}`), allow(`args.a == "x"`), nil, never(`args.a == "y"`), prove.Proved},
		{"one-of-keeps-cells", object(`{"oneOf":[{"type":"integer"},{"type":"string"}]}`), deny(`args.a == "x"`), nil, never(`args.a == "x"`), prove.Proved},
		{"one-of-is-tried", object(`{"oneOf":[{"type":"integer"},{"type":"string"}]}`), allow("true"), nil, never(`args.a == 5`), prove.Refuted},
		{"two-arguments-proved-nevertheless", "", deny("args.a == args.b"), nil, never("args.a == args.b"), prove.Proved},
		{"arithmetic-is-unknown", object(`{"type":"integer"}`), deny("args.a + 1 > 501"), nil, never("args.a > 500"), prove.Unknown},
		{"failing-rule-escalates", object(`{"type":["integer","string"]}`), deny(`risk.mode == "danger"`),
			&risk.Content{Modes: risk.DefaultModes(), Initial: "review", Rules: []risk.Rule{{ID: "big", Escalate: true,
				Args: []risk.Predicate{{Path: "a", Op: "gt", Value: []byte("500")}}}}}, never(`args.a == "x" || args.a > 500`), prove.Proved},
		{"failing-rule-only-lowers", object(`{"type":["integer","string"]}`), allow(`risk.mode == "safe"`),
			&risk.Content{Modes: risk.DefaultModes(), Initial: "review", Rules: []risk.Rule{{ID: "small", SetMode: "safe",
				Args: []risk.Predicate{{Path: "a", Op: "lt", Value: []byte("500")}}}}}, never(`args.a == "x" || args.a >= 500`), prove.Proved},
		{"score-of-an-argument", object(`{"type":"number"}`), allow("risk.score < 50"),
			&risk.Content{Modes: risk.DefaultModes(), Initial: "safe", Rules: []risk.Rule{{ID: "s", ScoreExpr: "double(args.a)"}}},
			never("risk.score >= 50"), prove.Proved},
		{"annotations-of-an-unpinned-tool", "", deny("tool_annotations.destructiveHint"), nil, never("!tool_annotations.readOnlyHint"), prove.Refuted},
		{"annotations-of-a-pinned-tool", object(`{}`), deny("tool_annotations.destructiveHint"), nil, never("true"), prove.Proved},
		{"shadow-decides-nothing", object(`{}`), append([]rules.Policy{{ID: "s", Mode: rules.Shadow, Effect: rules.Deny}}, allow("true")...), nil,
			never("true"), prove.Refuted},
		{"history-that-fails", object(`{}`), deny(`history.count("actor", "1h") > 3`), nil, never(`history.count("actor", "1h") > 3`), prove.Proved},
		{"client-of-a-static-caller", object(`{}`), allow(`actor.client == "x" && actor.id == "bob"`), nil, never(`true`), prove.Proved},
		{"kind-of-a-local-user", object(`{}`), allow(`actor.kind == "agent" && actor.id == "local:bob"`), nil, never(`true`), prove.Proved},
		{"kind-of-a-person-elsewhere", object(`{}`), allow(`actor.kind == "person" && actor.id == "https://idp#bob"`), nil, never(`true`), prove.Refuted},
		{"local-user", object(`{}`), allow(`actor.id.startsWith("local:")`), nil, never(`true`), prove.Refuted},
		{"roles-of-a-group", object(`{}`), allow(`"admin" in actor.roles`), nil,
			never(`!("ops" in actor.groups) && actor.id != "bob"`), prove.Proved},
		{"roles-of-a-name", object(`{}`), allow(`"admin" in actor.roles`), nil, never(`!("ops" in actor.groups)`), prove.Refuted},
		{"unknown-groups", object(`{}`), allow("true"), nil,
			never(`!("ops" in actor.groups || !("ops" in actor.groups))`), prove.Refuted},
		{"reachable", object(`{"type":"integer"}`), allow("args.a == 7"), nil,
			prove.Claim{ID: "c", Kind: prove.Reachable, Effect: rules.Allow}, prove.Proved},
		{"not-reachable", object(`{"type":"integer","maximum":6}`), allow("args.a == 7"), nil,
			prove.Claim{ID: "c", Kind: prove.Reachable, Effect: rules.Allow}, prove.Refuted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *policy.Content) {
				c.Policy, c.Risk = &rules.Content{Policies: tt.policies}, tt.risk
				c.Roles = []policy.Role{{Role: "admin", Actors: []string{"bob", "group:ops"}}}
			}, tt.schema)
			result := f.prove(t, tt.claim)[0]
			if diff := cmp.Diff(tt.want, result.Status); diff != "" {
				t.Errorf("the claim is wrong (-want +got):\n%s%+v", diff, result)
			}
			if result.Call != nil {
				checkCall(t, f, &tt.claim, &result)
			}
		})
	}
}

// TestToolsAreDividedApart: what a condition asks about the caller can depend on the tool.
func TestToolsAreDividedApart(t *testing.T) {
	for _, schema := range []string{"", `{"type":"object"}`} {
		f := newFixture(t, func(c *policy.Content) {
			c.Roles = []policy.Role{{Role: "tool1", Actors: []string{"bob"}}}
			c.Policy = &rules.Content{Policies: []rules.Policy{{ID: "own", When: "tool in actor.roles", Effect: rules.Allow}}}
		}, schema, schema, schema)
		result := f.prove(t, prove.Claim{ID: "c", Kind: prove.Never, Effect: rules.Allow})[0]
		if result.Status != prove.Refuted || result.Call == nil || result.Call.Tool != "tool1" {
			t.Errorf("with the schema %q the claim is %s %+v, want it refuted by a call of tool1", schema, result.Status, result.Call)
		}
	}
}

// TestTooManyCombinations gives up on policies whose proof has too many cases: each denies one combination of three of many
// arguments, and together they deny every call.
func TestTooManyCombinations(t *testing.T) {
	const arguments, combinations = 100, 500
	r := rand.New(rand.NewPCG(1, 38))
	var members, names []string
	for i := range arguments {
		members = append(members, fmt.Sprintf(`"a%d":{"type":"boolean"}`, i))
		names = append(names, fmt.Sprintf(`"a%d"`, i))
	}
	var policies []rules.Policy
	for i := range combinations {
		var tests []string
		for _, k := range r.Perm(arguments)[:3] {
			tests = append(tests, fmt.Sprintf("args.a%d == %t", k, r.IntN(2) == 0))
		}
		policies = append(policies, rules.Policy{ID: fmt.Sprint("p", i), Effect: rules.Deny, When: strings.Join(tests, " && ")})
	}
	policies = append(policies, rules.Policy{ID: "rest", Effect: rules.Allow})
	schema := `{"type":"object","properties":{` + strings.Join(members, ",") + `},"required":[` + strings.Join(names, ",") + `]}`
	f := newFixture(t, func(c *policy.Content) { c.Policy = &rules.Content{Policies: policies} }, schema)
	result := f.prove(t, prove.Claim{ID: "c", Kind: prove.Never, Effect: rules.Allow})[0]
	if result.Status != prove.Unknown || !strings.Contains(result.Reason, "too many combinations") {
		t.Errorf("Prove() = %+v, want unknown for too many combinations", result)
	}
}
