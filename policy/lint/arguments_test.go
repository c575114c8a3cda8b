package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// findingsAbout lints conditions about one tool with an inputSchema, and returns the places of what is wrong with its arguments.
func findingsAbout(t *testing.T, inputSchema, when string) string {
	t.Helper()
	c := config(func(c *policy.Content) {
		c.Allowlist = []policy.Allowance{{Server: "pay", Tools: []string{"refund"}}}
		c.Risk = &risk.Content{Modes: risk.DefaultModes(), Initial: "safe"}
		c.Policy = &rules.Content{Policies: []rules.Policy{{ID: "p", When: when, Effect: rules.Pending}}}
	})
	page := fmt.Sprintf(`{"tools":[{"name":"refund","inputSchema":%s}]}`, inputSchema)
	var places []string
	for _, f := range lint.Lint(c, catalog(t, c, listing("pay", page))) {
		switch f.Code {
		case lint.ArgumentUnknown:
			places = append(places, fmt.Sprintf("%d:%d unknown", f.Line, f.Column))
		case lint.ArgumentType:
			places = append(places, fmt.Sprintf("%d:%d", f.Line, f.Column))
		}
	}
	return strings.Join(places, ", ")
}

func TestArguments(t *testing.T) {
	const inputSchema = `{"type":"object","properties":{"any":{},"bool":{"type":"boolean"},"n":{"type":"number"},"null":{"type":"null"},
		"text":{"type":"string"},"texts":{"type":"array","items":{"type":"string"}},"maybe":{"type":["string","null"]},
		"list":{"type":"array"},"open":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":true},
		"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"}}}},
		"tree":{"$ref":"#/$defs/tree"},"one":{"enum":["a","b"]}},
		"$defs":{"tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"},"n":{"const":1}}}}}`
	for _, tc := range []struct {
		src   string
		place string // and what, if it is an unknown name
	}{
		{`args.n > 1`, ""}, {`args.n == 1.0`, ""}, {`args.n == 1u`, ""}, {`args.any > 1`, ""}, {`args.any.x.y == 1`, ""}, {`size(args) == 0`, ""},
		{`args.open.x == 1`, ""}, {`args.open.n + 1 == 2`, ""}, {`args.maybe == null`, ""}, {`args.maybe.startsWith('a')`, ""},
		{`args['n'] == 1`, ""}, {`'n' in args`, ""}, {`args.exists(k, k == 'n')`, ""}, {`args.text in args.texts`, ""},
		{`args.texts[0].size() > 1`, ""}, {`args.files.map(f, f.path).exists(p, p == 'x')`, ""}, {`args.list[0] == 1`, ""},
		{`double(args.text) > 1.0`, ""}, {`timestamp(args.text) < now`, ""}, {`(args.bool ? args.n : 0) > 1`, ""},
		{`args.n + 1.5 > 2.0`, ""}, {`args.n / 2 < 7 && args.n / 2.0 < 7.0`, ""}, {`args.texts == []`, ""}, {`actor.id == args.text`, ""},
		{`args.text in actor.roles`, ""}, {`args.text.split(',') == ['a']`, ""}, {`'x' in args.open`, ""}, {`args.open == args`, ""},
		{`args.files.exists_one(f, f.path.matches('^/'))`, ""}, {`size(args.texts) > 1`, ""}, {`args.texts + ['a'] == []`, ""},
		{`args.tree.next.next.next.n == 1`, ""}, {`args.one == 'a'`, ""}, {`args.open.exists(k, k == 'n')`, ""},

		{`args.x == 1`, "1:6 unknown"}, {`has(args.x)`, "1:4 unknown"}, {`args['x'] == 1`, "1:5 unknown"}, {`'x' in args`, "1:5 unknown"},
		{`pinned && args.x == 1`, "1:16 unknown"}, {`args.files.exists(f, f.name == '')`, "1:24 unknown"},
		{`args.files[0].name == 'x'`, "1:15 unknown"}, {`args.files.filter(f, f.x == 1) == []`, "1:24 unknown"},
		{`args.tree.next.next.x == 1`, "1:21 unknown"}, {"true ||\n  args.x == 1", "2:8 unknown"},
		{`args.text > 5`, "1:11"}, {`args.n == '5'`, "1:8"}, {`'5' != args.n`, "1:5"}, {`args.text.n == 1`, "1:10"},
		{`args.n.startsWith('a')`, "1:18"}, {`args.text.startsWith(args.n)`, "1:21"}, {`!args.n`, "1:1"}, {`args.n && true`, "1:5"},
		{`args.n ? true : false`, "1:8"}, {`args.text in [1, 2]`, "1:11"}, {`args.n in args.texts`, "1:8"}, {`args.n in actor.roles`, "1:8"},
		{`1 in args.n`, "1:3"}, {`args.n[0] == 1`, "1:7"}, {`args.texts['a'] == 'b'`, "1:11"}, {`args.n.exists(x, true)`, "1:5"},
		{`args.text == null`, "1:11"}, {`-args.text < 5`, "1:1"}, {`args.text + 1 == 2`, "1:11"}, {`size(args.n) > 1`, "1:5"},
		{`math.greatest(args.text, 1) > 5`, "1:14"}, {`(pinned ? args.text : 'x') == 5`, "1:28"}, {`args.texts.exists(x, x > 5)`, "1:24"},
		{`args.n.split(',') == []`, "1:13"}, {`args.list == 'x'`, "1:11"}, {`args.one > 5`, "1:10"}, {`args.tree.n == 'a'`, "1:13"},
	} {
		if got := findingsAbout(t, inputSchema, tc.src); got != tc.place {
			t.Errorf("%s is wrong at %q, want %q", tc.src, got, tc.place)
		}
	}
}

// TestArgumentsOfSchemas: which arguments are known to be none, for the forms in which schemas name them.
func TestArgumentsOfSchemas(t *testing.T) {
	for _, tc := range []struct {
		name, schema, src string
		unknown           bool
	}{
		{"nothing-named-is-closed", `{"type":"object"}`, `has(args.x)`, true},
		{"open-in-words", `{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":{}}`, `has(args.x)`, false},
		{"pattern-names", `{"type":"object","patternProperties":{"^x":{}}}`, `has(args.x)`, false},
		{"nested-open", `{"type":"object","properties":{"a":{"type":"object"}}}`, `has(args.a.x)`, false},
		{"nested-closed", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}}}`, `has(args.a.x)`, true},
		{"reference", `{"type":"object","$defs":{"x":{"properties":{"b":{}}}},"properties":{"a":{"type":"object","$ref":"#/$defs/x"}}}`, `has(args.a.b)`, false},
		{"alternatives", `{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"b":{}}},{"properties":{"c":{}}}]}`, `has(args.x)`, false},
		{"all-of", `{"type":"object","allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, `has(args.a) && has(args.b)`, false},
		{"all-of-and-no-more", `{"type":"object","allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, `has(args.x)`, true},
		{"condition", `{"type":"object","if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{}}}}`, `has(args.b)`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := findingsAbout(t, tc.schema, tc.src); (got != "") != tc.unknown {
				t.Errorf("lint of %s finds %q, want unknown %t", tc.src, got, tc.unknown)
			}
		})
	}
}
