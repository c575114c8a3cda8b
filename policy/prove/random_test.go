package prove_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// isSoak reports whether the long tests are asked for (make soak).
func isSoak() bool { return os.Getenv("PGFSM_SOAK") != "" }

func rounds(short, long int) int {
	if isSoak() {
		return long
	}
	return short
}

// A fixture is a configuration with one server, and the listing of its tools.
type fixture struct {
	content policy.Content
	bundle  *policy.Bundle
	catalog *policy.Catalog
}

// newFixture compiles a configuration whose tools have the given schemas. A tool whose schema is
// empty is not pinned.
func newFixture(tb testing.TB, change func(*policy.Content), schemas ...string) *fixture {
	tb.Helper()
	f := &fixture{content: policy.Content{
		Format:  policy.ContentFormat,
		Env:     "prod",
		Servers: []policy.Server{{Name: "pay"}},
		Input:   policy.Input{MaxBytes: policy.DefaultInputBytes},
		Planner: policy.Planner{Mode: policy.PlannerRouter},
		Policy:  &rules.Content{},
		Summary: policy.SummaryNever,
		Limits:  policy.DefaultLimits(),
	}}
	var tools, names []string
	for i, s := range schemas {
		name := fmt.Sprintf("tool%d", i)
		names = append(names, name)
		if s == "" {
			s = `{"type":"object"}`
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, s))
	}
	f.content.Allowlist = []policy.Allowance{{Server: "pay", Tools: names}}
	if change != nil {
		change(&f.content)
	}

	page := `{"tools":[` + strings.Join(tools, ",") + `]}`
	listings := []policy.Listing{{Server: "pay", Status: policy.ServerUp, Pages: []canonical.Text{canonical.Text(page)}}}
	first, err := policy.Compile(f.content)
	if err != nil {
		tb.Fatalf("Compile(%+v) failed: %v", f.content.Policy, err)
	}
	for i, s := range schemas {
		if s == "" {
			continue
		}
		live, _ := first.Catalog("x", listings).Find("pay", names[i])
		if !live.Effective() {
			tb.Fatalf("the schema %s is refused: %s", s, live.Reason)
		}
		f.content.Pins = append(f.content.Pins, policy.Pin{Server: "pay", Tool: names[i], Definition: live.Digest})
	}
	if f.bundle, err = policy.Compile(f.content); err != nil {
		tb.Fatal(err)
	}
	f.catalog = f.bundle.Catalog("y", listings)
	return f
}

func (f *fixture) prove(tb testing.TB, claims ...prove.Claim) []prove.Result {
	tb.Helper()
	results, err := prove.Prove(context.Background(), f.bundle, claims, prove.Options{Catalog: f.catalog})
	if err != nil {
		tb.Fatalf("Prove() failed: %v", err)
	}
	return results
}

// Values of arguments, near to what conditions and schemas of these tests compare with.
var (
	scalars = []string{
		`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `9`, `10`, `11`, `-1`, `-5`, `1.0`, `2.5`, `5.0`, `5.5`, `4.999999999999999`,
		`5.000000000000001`, `10.0`, `9.5`, `0.1`, `0.10000000000000000001`, `9007199254740991`, `9007199254740992`,
		`9007199254740993`, `9007199254740994`, `9007199254740993.0`, `9007199254740992.0`, `-9007199254740993`,
		`9223372036854775807`, `9223372036854775808`, `-9223372036854775809`, `1e20`, `1e300`, `1e999`, `-1e999`, `1e-999`, `5e0`,
		`50e-1`, `100000000000000000000`, `null`, `true`, `false`, `""`, `"a"`, `"b"`, `"ab"`, `"abc"`, `"aab"`, `"ba"`,
		`"A"`, `"AB"`, `"É"`, `"é"`, `"a/b"`, `"/a"`, `"a\nb"`, `"x"`, `"xx"`, `"xxx"`, `"xxxx"`, `"xab"`, `"abx"`, `"xabx"`,
		`"a b"`, `"K"`, `"k"`, `"K"`, `"0"`, `"12"`, `"a1"`, `"ſ"`, `"s"`,
	}
	elements = append([]string{
		`{}`, `[]`, `{"a":5}`, `{"a":6,"b":"ab"}`, `{"a":5.0,"b":"x"}`, `{"b":"ab"}`, `{"a":null}`, `{"a":"a","b":5}`, `["a"]`,
		`{"a":9007199254740993}`, `{"a":1e999}`, `{"a":6}`, `{"a":1,"b":"x","c":[]}`,
	}, scalars...)
)

// randomValue returns a value that no cell is known for.
func randomValue(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0, 1:
		list := make([]string, r.IntN(7))
		pool := elements[r.IntN(len(elements)/2):]
		for i := range list {
			list[i] = pool[r.IntN(min(len(pool), 1+r.IntN(8)))]
		}
		return "[" + strings.Join(list, ",") + "]"
	case 2:
		var members []string
		for _, name := range []string{"a", "b", "c", "ab"} {
			if r.IntN(2) == 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, elements[r.IntN(len(elements))]))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return elements[r.IntN(len(elements))]
}

func randomArguments(r *rand.Rand) []byte {
	var members []string
	for _, name := range []string{"m", "n", "s"} {
		if r.IntN(4) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, randomValue(r)))
		}
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

func randomLiteral(r *rand.Rand) string {
	return []string{
		`5`, `5.0`, `5.5`, `0`, `1`, `-1`, `10`, `9007199254740993`, `9007199254740992`, `0.1`, `5u`, `"a"`, `"ab"`, `"x"`, `""`, `true`, `null`,
	}[r.IntN(17)]
}

// randomAtom returns a test of an argument or of something else about the call.
func randomAtom(r *rand.Rand) string {
	place := "args." + []string{"m", "n", "s", "m", "n", "m.a", "m.b", "n['a']"}[r.IntN(8)]
	text := []string{`"a"`, `"ab"`, `"x"`, `"b"`, `""`}[r.IntN(5)]
	pattern := []string{`^a`, `b$`, `^[a-z]+$`, `(?i)k`, `a.b`, `\bab\b`, `^x{2,3}$`, `\d`, `(?m)^b`, `[^a]`, `.*`}[r.IntN(11)]
	size := fmt.Sprintf("%s %d", []string{"==", ">", "<=", "!="}[r.IntN(4)], r.IntN(5))
	order := []string{"<", "<=", ">", ">=", "==", "!="}[r.IntN(6)]
	body := []string{
		`x == "a"`, `x > 5`, `x.startsWith("a")`, `x.a > 5`, `x.b == "ab"`, `x in ["a", 5]`, `!(x == 5)`, `x.a == 5 && x.b != "x"`,
		`size(x) > 1`, `has(x.a)`, `x.a > 5 || x.b.contains("a")`,
	}[r.IntN(11)]
	switch r.IntN(17) {
	case 0, 1, 2:
		return place + " " + order + " " + randomLiteral(r)
	case 3:
		return fmt.Sprintf("%s in [%s, %s]", place, randomLiteral(r), randomLiteral(r))
	case 4:
		return fmt.Sprintf("%s.%s(%s)", place, []string{"startsWith", "endsWith", "contains"}[r.IntN(3)], text)
	case 5:
		return fmt.Sprintf("%s.matches(r'%s')", place, pattern)
	case 6:
		return fmt.Sprintf("size(%s) %s", place, size)
	case 7:
		return "has(args." + []string{"m", "n", "s", "m.a", "m.b"}[r.IntN(5)] + ")"
	case 8, 9:
		return fmt.Sprintf("%s.%s(x, %s)", place, []string{"exists", "all"}[r.IntN(2)], body)
	case 10:
		return fmt.Sprintf("%s in %s", text, place)
	case 11:
		return place + " == true"
	case 12:
		return fmt.Sprintf("risk.score %s %d", order, []int{0, 10, 50, 90, 100}[r.IntN(5)])
	case 13:
		return []string{`risk.mode == "danger"`, `risk.mode in ["review", "danger"]`, `"r0" in risk.rules`}[r.IntN(3)]
	case 14: // free: two arguments, a form that is not analyzed, or where arguments come from
		return []string{`args.m == args.n`, `args.n % 2 == 0`, `args.s.lowerAscii() == "ab"`, `args.n + 1 > 6`, `args.m[0] == "a"`,
			`found()`, `found("m")`, `origin("m") == "request"`, `session.untrusted`, `session.private && args.n > 5`}[r.IntN(10)]
	case 15:
		return []string{
			`actor.id == "bob"`, `"admin" in actor.roles`, `actor.kind == "person"`, `"ops" in actor.groups`,
			`actor.id.startsWith("https://")`, `actor.client == "cli"`, `"staff" in actor.roles`, `actor.on_behalf_of == ""`, `tool in actor.roles`,
		}[r.IntN(9)]
	}
	return []string{
		`tool == "tool0"`, `tool.endsWith("1")`, `env == "prod"`, `tool_annotations.destructiveHint`, `pinned`, `history.count("actor", "1h") > 3`,
		`history.sum("actor", "1h", "n") >= 5.5`, `tool_annotations.readOnlyHint || true`,
	}[r.IntN(8)]
}

// randomRiskAtom returns a test that risk rules can make.
func randomRiskAtom(r *rand.Rand) string {
	for {
		if a := randomAtom(r); !strings.Contains(a, "risk.") {
			return "(" + a + ")"
		}
	}
}

func randomCondition(r *rand.Rand, depth int) string {
	sub := func() string { return "(" + randomCondition(r, depth-1) + ")" }
	if depth > 0 {
		switch r.IntN(7) {
		case 0:
			return "!" + sub()
		case 1, 2:
			return sub() + " && " + sub()
		case 3, 4:
			return sub() + " || " + sub()
		case 5:
			return sub() + " ? " + sub() + " : " + sub()
		}
	}
	return randomAtom(r)
}

func randomPolicies(r *rand.Rand) *rules.Content {
	c := &rules.Content{}
	for i := range 1 + r.IntN(4) {
		p := rules.Policy{ID: fmt.Sprintf("p%d", i), Effect: []string{"allow", "allow", "deny", "pending"}[r.IntN(4)]}
		if r.IntN(5) > 0 {
			p.When = randomCondition(r, r.IntN(3))
		}
		if r.IntN(8) == 0 {
			p.Match.Tool = "tool[1]"
		}
		if r.IntN(8) == 0 {
			p.Mode = rules.Shadow
		}
		if p.Effect == rules.Allow && r.IntN(3) == 0 {
			p.Deny = randomCondition(r, 1)
		}
		if p.Effect == rules.Allow && r.IntN(3) == 0 {
			p.RequireApprovalIf = randomCondition(r, 1)
		}
		if p.Effect == rules.Pending || p.RequireApprovalIf != "" {
			p.Quorum = r.IntN(3)
			p.Approvers = [][]string{nil, {"admin"}, {"admin", "staff"}}[r.IntN(3)]
		}
		c.Policies = append(c.Policies, p)
	}
	return c
}

func randomRisk(r *rand.Rand) *risk.Content {
	if r.IntN(3) == 0 {
		return nil
	}
	c := &risk.Content{Modes: risk.DefaultModes(), Initial: []string{"safe", "review"}[r.IntN(2)]}
	if r.IntN(2) == 0 {
		c.Vars = []risk.Var{{Name: "v", Expr: []string{
			`args.s in ["a", "ab"] ? 70.0 : args.s == "x" ? score : 5.0`, `double(args.n)`, `args.n > 5 ? 95.0 : 10.0`,
			`has(args.m) && args.m == "a" || args.n == 5.0 ? 60.0 : 1.0 / (score - 1.0)`,
			randomRiskAtom(r) + ` ? 60.0 : 20.0`,
		}[r.IntN(5)]}}
	}
	for i := range 1 + r.IntN(3) {
		rule := risk.Rule{ID: fmt.Sprintf("r%d", i)}
		for range r.IntN(3) {
			rule.Args = append(rule.Args, randomPredicate(r))
		}
		switch r.IntN(4) {
		case 0:
			rule.SetMode = []string{"safe", "review", "danger"}[r.IntN(3)]
		case 1:
			rule.Escalate = true
		case 2:
			rule.ScoreExpr = []string{"60.0", "score + 25.0", "score > 10.0 ? 100.0 : 5.0", "10.0 / score"}[r.IntN(4)]
		default:
			rule.ScoreExpr = []string{
				"double(args.n) * 10.0", "double(size(args.s))", `args.n >= 5.5 ? 100.0 : score`, `actor.id == "bob" ? 90.0 : 10.0`,
				`args.m.exists(x, x == "a") ? score + 45.0 : 45.0`, `(args.n > 5) == true ? score / 2.0 : score * 2.0`,
			}[r.IntN(6)]
			if len(c.Vars) > 0 {
				rule.ScoreExpr = []string{"vars.v", "math.greatest(score, vars.v)", `vars.v > 50.0 ? 100.0 : vars.v`}[r.IntN(3)]
			}
		}
		c.Rules = append(c.Rules, rule)
	}
	if r.IntN(2) == 0 {
		c.ModeByScore = []risk.Threshold{{Mode: "danger", When: "score >= 90.0"}, {Mode: "review", When: "score >= 40.0"}}
	}
	return c
}

func randomPredicate(r *rand.Rand) risk.Predicate {
	path := []string{"m", "n", "s", "/m/a", "/m/b", "/n/0", "/n/a"}[r.IntN(7)]
	number := []string{"5", "5.5", "0", "9007199254740993", "10.0"}[r.IntN(5)]
	text := []string{`"a"`, `"AB"`, `"k"`, `"x"`}[r.IntN(4)]
	op := condition.Ops()[r.IntN(len(condition.Ops()))]
	value := number
	switch op {
	case condition.OpEq, condition.OpNe, condition.OpContains:
		value = []string{number, text, "true"}[r.IntN(3)]
	case condition.OpIn:
		value = "[" + number + "," + text + "]"
	case condition.OpMatches:
		value = `"^[a-z]+$"`
	case condition.OpExists:
		value = []string{"true", "false"}[r.IntN(2)]
	}
	return risk.Predicate{Path: path, Op: op, Value: []byte(value)}
}

var memberSchemas = []string{
	`{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number","minimum":0,"maximum":10}`,
	`{"type":"integer","minimum":0,"maximum":10}`, `{"type":"string","pattern":"^[a-z]*$","maxLength":3}`,
	`{"enum":["a","ab",5,null]}`, `{"type":["string","null"]}`, `{"type":"boolean"}`, `{"const":5}`,
	`{"type":"array","items":{"type":"string"},"maxItems":3}`, `{"type":"array"}`, `{"type":"array","items":{"type":["number","string"]},"minItems":1}`,
	`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}}`,
	`{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":5},"b":{"enum":["ab","x"]}},"required":["b"]}`,
	`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object"}`,
	`{"oneOf":[{"type":"integer"},{"type":"string","minLength":2}]}`, `{"not":{"type":"string"}}`,
	`{"allOf":[{"type":"integer"},{"minimum":5}]}`, `{"anyOf":[{"const":"a"},{"type":"number","multipleOf":5}]}`, `{"not":{}}`,
	`{"type":"number","exclusiveMaximum":5.5}`, `{"$ref":"#/$defs/d"}`,
}

func randomSchema(r *rand.Rand) string {
	pick := func() string { return memberSchemas[r.IntN(len(memberSchemas))] }
	if r.IntN(12) == 0 {
		return "" // not pinned
	}
	required := []string{`[]`, `["m"]`, `["n"]`, `["m","n"]`}[r.IntN(4)]
	if r.IntN(6) == 0 {
		return fmt.Sprintf(`{"allOf":[{"properties":{"m":%s}},{"properties":{"n":%s,"s":{}},"required":%s}],"type":"object","$defs":{"d":{"type":"integer","minimum":1}}}`,
			pick(), pick(), required)
	}
	return fmt.Sprintf(`{"type":"object","properties":{"m":%s,"n":%s,"s":%s},"required":%s,"$defs":{"d":{"type":"integer","minimum":1}}}`,
		pick(), pick(), pick(), required)
}

func randomInput(r *rand.Rand, b *policy.Bundle, args []byte, tool string, pinned bool) *condition.Input {
	in := &condition.Input{
		Server: "pay",
		Tool:   tool,
		Env:    "prod",
		Args:   args,
		Pinned: pinned,
		Now:    "2026-05-05T10:00:00.000Z",
	}
	hint := func() *bool { return []*bool{nil, new(true), new(false)}[r.IntN(3)] }
	if !pinned {
		in.Annotations = condition.Annotations{ReadOnly: hint(), Destructive: hint()}
	}
	actor := []string{"bob", "agent", "local:ann", "https://idp#bob", "https://idp#x", ""}[r.IntN(6)]
	var id *policy.Identity
	if policy.HasSubject(actor) && r.IntN(6) > 0 {
		id = &policy.Identity{
			Kind:       []string{"agent", "person", ""}[r.IntN(3)],
			Client:     []string{"", "cli", "x"}[r.IntN(3)],
			OnBehalfOf: []string{"", "ann"}[r.IntN(2)],
		}
		if r.IntN(4) > 0 {
			id.Groups = &[][]string{{}, {"ops"}, {"dev"}, {"ops", "dev"}}[r.IntN(4)]
		}
	}
	in.Actor = b.ConditionActor(actor, id)
	if r.IntN(3) > 0 {
		in.History = []condition.Answer{
			{Of: "count", Scope: "actor", Window: 3600, Value: []string{"0", "3", "4", "100"}[r.IntN(4)]},
			{Of: "sum", Scope: "actor", Window: 3600, Path: "n", Value: []string{"0", "5.5", "5.4", "6", "1e400"}[r.IntN(5)]},
		}
	}
	if r.IntN(3) > 0 {
		in.Origins = &condition.Origins{Untrusted: r.IntN(2) == 0, Private: r.IntN(2) == 0, Leaves: []origin.Leaf{
			{At: "/m", Role: []string{"", origin.Target}[r.IntN(2)], Origin: []string{origin.Request, origin.Trusted, origin.None}[r.IntN(3)]},
		}}
	}
	return in
}

// assess returns the decision about a call.
func assess(b *policy.Bundle, in *condition.Input) policy.Assessment { return b.Assess(in) }

func effectOf(a policy.Assessment) string {
	switch {
	case a.Verdict.Allows():
		return rules.Allow
	case a.Verdict.Holds():
		return rules.Pending
	}
	return rules.Deny
}
