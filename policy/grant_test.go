package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
)

// grantPage lists three tools that take anything; the allowlist of grantContent names two of them.
const grantPage = `{"tools":[` +
	`{"name":"read","inputSchema":{"type":"object","additionalProperties":true}},` +
	`{"name":"list","inputSchema":{"type":"object","additionalProperties":true}},` +
	`{"name":"drop","inputSchema":{"type":"object","additionalProperties":true}}]}`

func grantContent(grants ...policy.Grant) policy.Content {
	c := statestest.Content()
	c.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: []string{"read", "list"}}}
	c.Outputs, c.Grants = nil, grants
	return c
}

// authorize asks a bundle about one call, as a run would.
func authorize(t *testing.T, c policy.Content, tool, args string, task *policy.Task) policy.Verdict {
	t.Helper()
	b, err := policy.Compile(c)
	check.NoError(t, err)
	return ask(t, b, tool, args, task)
}

func ask(t *testing.T, b *policy.Bundle, tool, args string, task *policy.Task) policy.Verdict {
	t.Helper()
	found, _ := b.Catalog("sha256:grants", statestest.Listings(grantPage)).Find(statestest.Server, tool)
	if found == nil {
		t.Fatalf("there is no tool %q", tool)
	}
	doc, err := canonical.JSON([]byte(args))
	check.NoError(t, err)
	return b.Authorize(found, nil, found.Digest, doc, task)
}

// grantRead is a grant of read, counted unless calls is 0, with constraints, each written as place and schema.
func grantRead(calls int, constraints ...string) policy.Grant {
	g := policy.Granted{Server: statestest.Server, Tool: "read"}
	if calls != 0 {
		g.Calls = &calls
	}
	for i := 0; i+1 < len(constraints); i += 2 {
		g.Args = append(g.Args, policy.Constraint{At: constraints[i], Schema: jsontext.Value(constraints[i+1])})
	}
	return policy.Grant{Name: "test.yaml", Tools: []policy.Granted{g}}
}

func TestGrantArguments(t *testing.T) {
	const not = policy.CodeArgumentsNotGranted
	for _, tc := range []struct {
		name, at, schema, args string
		want                   policy.Code
	}{
		{"eq-the-same-text", "/p", `{"const":"/srv"}`, `{"p":"/srv"}`, ""},
		{"eq-another-text", "/p", `{"const":"/srv"}`, `{"p":"/srv/"}`, not},
		{"eq-text-with-an-escape", "/p", `{"const":"a"}`, `{"p":"\u0061"}`, ""},
		{"eq-null-is-not-missing", "/p", `{"const":null}`, `{}`, not},
		{"one-above-two-to-the-53", "/n", `{"const":9007199254740992}`, `{"n":9007199254740993}`, not},
		{"in-the-last", "/p", `{"enum":["a","b",3]}`, `{"p":3}`, ""},
		{"schema-fits", "/p", `{"type":"string","pattern":"^/srv/"}`, `{"p":"/srv/x"}`, ""},
		{"schema-does-not-fit", "/p", `{"type":"string","pattern":"^/srv/"}`, `{"p":"/etc/x"}`, not},
		{"schema-leaves-the-rest-free", "/o", `{"properties":{"a":{"const":1}}}`, `{"o":{"a":1,"z":2},"other":3}`, ""},
		{"schema-that-takes-everything-needs-the-place", "/p", `true`, `{}`, not},
		{"nested", "/o/a/b", `{"const":1}`, `{"o":{"a":{"b":1}}}`, ""},
		{"nested-missing", "/o/a/b", `{"const":1}`, `{"o":{"a":{}}}`, not},
		{"nested-through-a-text", "/o/a", `{"const":1}`, `{"o":"a"}`, not},
		{"nested-through-a-list", "/o/0", `{"const":1}`, `{"o":[1]}`, not},
		{"name-with-a-slash-and-a-tilde", "/a~1b~0c", `{"const":1}`, `{"a/b~c":1}`, ""},
		{"name-in-another-case", "/p", `{"const":1}`, `{"P":1}`, not},
		{"name-that-is-empty", "/", `{"const":1}`, `{"":1}`, ""},
		{"whole", "", `{"maxProperties":1}`, `{"a":1}`, ""},
		{"whole-and-too-many", "", `{"maxProperties":1}`, `{"a":1,"b":2}`, not},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := authorize(t, grantContent(grantRead(0, tc.at, tc.schema)), "read", tc.args, nil)
			if v.Code != tc.want || v.Allows() != (tc.want == "") {
				t.Errorf("Authorize(%s) under %q %s = %+v, want code %q", tc.args, tc.at, tc.schema, v, tc.want)
			}
		})
	}
}

func TestGrantsAreIntersected(t *testing.T) {
	one, two := grantRead(0, "/p", `{"enum":["a","b"]}`), grantRead(0, "/p", `{"enum":["b","c"]}`)
	list := policy.Grant{Name: "list.yaml", Tools: []policy.Granted{{Server: statestest.Server, Tool: "list"}}}
	drop := policy.Grant{Name: "drop.yaml", Tools: []policy.Granted{{Server: statestest.Server, Tool: "drop"}}}
	other := policy.Grant{Name: "other.yaml", Tools: []policy.Granted{{Server: "elsewhere", Tool: "read"}}}
	for _, tc := range []struct {
		name       string
		grants     []policy.Grant
		tool, args string
		want       policy.Code
	}{
		{"none", nil, "read", `{}`, ""},
		{"both-cover-it", []policy.Grant{one, two}, "read", `{"p":"b"}`, ""},
		{"the-first-does-not", []policy.Grant{one, two}, "read", `{"p":"c"}`, policy.CodeArgumentsNotGranted},
		{"the-second-does-not", []policy.Grant{one, two}, "read", `{"p":"a"}`, policy.CodeArgumentsNotGranted},
		{"two-constraints-of-one-place", []policy.Grant{grantRead(0, "/p", `{"minLength":2}`, "/p", `{"maxLength":2}`)},
			"read", `{"p":"abc"}`, policy.CodeArgumentsNotGranted},
		{"another-tool-only", []policy.Grant{list}, "read", `{}`, policy.CodeToolNotGranted},
		{"nothing-in-common", []policy.Grant{one, list}, "list", `{}`, policy.CodeToolNotGranted},
		{"what-the-allowlist-does-not-name", []policy.Grant{drop}, "drop", `{}`, policy.CodeToolNotAllowed},
		{"the-tool-of-another-server", []policy.Grant{other}, "read", `{}`, policy.CodeToolNotGranted},
		{"zero-grant", []policy.Grant{{}}, "read", `{}`, policy.CodeToolNotGranted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := authorize(t, grantContent(tc.grants...), tc.tool, tc.args, nil)
			if v.Code != tc.want || v.Allows() != (tc.want == "") {
				t.Errorf("Authorize(%s, %s) = %+v, want code %q", tc.tool, tc.args, v, tc.want)
			}
		})
	}
}

func TestGrantCounts(t *testing.T) {
	made := func(id string, n ...int) *policy.Task {
		task := &policy.Task{ID: id, Calls: []policy.TaskCalls{{Calls: 9, Server: statestest.Server, Tool: "list"}}}
		for _, calls := range n {
			task.Calls = append(task.Calls, policy.TaskCalls{Calls: calls, Server: statestest.Server, Tool: "read"})
		}
		return task
	}
	for _, tc := range []struct {
		name  string
		calls int
		task  *policy.Task
		want  policy.Code
	}{
		{"not-counted-needs-no-task", 0, nil, ""},
		{"not-counted-in-a-task", 0, made("t", policy.MaxGrantCalls), ""},
		{"first", 2, made("t"), ""},
		{"last", 2, made("t", 1), ""},
		{"one-past", 2, made("t", 2), policy.CodeGrantExhausted},
		{"counted-in-two-entries", 2, made("t", 1, 1), policy.CodeGrantExhausted},
		{"negative-gives-nothing-back", 2, made("t", 2, -5), policy.CodeGrantExhausted},
		{"without-a-task", 2, nil, policy.CodeGrantTaskMissing},
		{"task-without-an-id", 2, made(""), policy.CodeGrantTaskMissing},
		{"most", policy.MaxGrantCalls, made("t", policy.MaxGrantCalls-1), ""},
		{"most-reached", policy.MaxGrantCalls, made("t", policy.MaxGrantCalls), policy.CodeGrantExhausted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := authorize(t, grantContent(grantRead(tc.calls)), "read", `{}`, tc.task)
			if v.Code != tc.want || v.Allows() != (tc.want == "") {
				t.Errorf("Authorize() with %d calls granted = %+v, want code %q", tc.calls, v, tc.want)
			}
		})
	}
}

func TestGrantsThatAreNone(t *testing.T) {
	twice, zero := grantRead(0), grantRead(1)
	zero.Tools[0].Calls = new(0)
	twice.Tools = append(twice.Tools, twice.Tools[0])
	for _, tc := range []struct {
		name   string
		grants []policy.Grant
		says   string // empty: it compiles
	}{
		{"most", slices.Repeat([]policy.Grant{grantRead(0)}, policy.MaxGrants), ""},
		{"one-too-many", slices.Repeat([]policy.Grant{grantRead(0)}, policy.MaxGrants+1), "there are 17 grants"},
		{"too-many-calls", []policy.Grant{grantRead(policy.MaxGrantCalls + 1)}, "calls is 1000001"},
		{"no-calls", []policy.Grant{zero}, "calls is 0"},
		{"tool-twice", []policy.Grant{twice}, "it stands twice"},
		{"no-schema", []policy.Grant{grantRead(0, "/p", ``)}, "schema"},
		{"schema-that-runs-away", []policy.Grant{grantRead(0, "/p", `{"$ref":"#"}`)}, "schema"},
		{"schema-from-elsewhere", []policy.Grant{grantRead(0, "/p", `{"$ref":"https://h.example/s"}`)}, "schema"},
		{"no-pointer", []policy.Grant{grantRead(0, "p", `true`)}, "not a JSON pointer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := policy.Compile(grantContent(tc.grants...))
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Compile() = %v, want %q in it", err, tc.says)
			}
		})
	}
	if v := new(policy.Bundle).Granted(nil, nil, nil); v.Allows() {
		t.Errorf("Granted(nil) = %+v, want it to block", v)
	}
}

// TestGrantsNeverWiden draws grants, pins and calls: what a bundle allows with grants it allows without them, and two
// grants together allow exactly what each of them alone allows.
func TestGrantsNeverWiden(t *testing.T) {
	const seed, rounds = 20261121, 400
	rng := rand.New(rand.NewPCG(seed, seed))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	places := []string{"", "/a", "/b", "/o/x", "/o"}
	schemas := []string{`{"const":1}`, `{"const":"x"}`, `{"enum":[1,2,"x",null]}`, `{"type":"integer"}`, `true`, `false`,
		`{"type":"object"}`, `{"required":["a"]}`, `{"not":{"const":1}}`}
	values := []string{`1`, `1.0`, `2`, `"x"`, `null`, `{"x":1}`, `{"x":"x"}`, `[]`}
	draw := func() policy.Grant {
		g := policy.Grant{Name: "drawn"}
		for _, tool := range []string{"read", "list", "drop"} {
			if rng.IntN(3) == 0 {
				continue
			}
			to := policy.Granted{Server: statestest.Server, Tool: tool}
			if calls := rng.IntN(3); calls > 0 {
				to.Calls = &calls
			}
			for range rng.IntN(3) {
				to.Args = append(to.Args, policy.Constraint{At: pick(places...), Schema: jsontext.Value(pick(schemas...))})
			}
			g.Tools = append(g.Tools, to)
		}
		return g
	}
	compile := func(pins []policy.Pin, grants ...policy.Grant) *policy.Bundle {
		c := grantContent(grants...)
		c.Pins = pins
		return statestest.MustBundle(c, nil)
	}
	seen := make(map[string]int)
	for range rounds {
		var pins []policy.Pin
		if rng.IntN(4) == 0 {
			drifted := canonical.Sum("tool definition", []byte("{}"))
			pins = []policy.Pin{{Definition: drifted, Server: statestest.Server, Tool: "list"}}
		}
		one, two := draw(), draw()
		without, first, second, both := compile(pins), compile(pins, one), compile(pins, two), compile(pins, one, two)
		for range 10 {
			tool := pick("read", "list", "drop")
			args := fmt.Sprintf(`{"a":%s,"o":%s}`, pick(values...), pick(values...))
			made := policy.TaskCalls{Calls: rng.IntN(3), Server: statestest.Server, Tool: tool}
			task := &policy.Task{ID: pick("", "t"), Calls: []policy.TaskCalls{made}}
			judge := func(b *policy.Bundle) bool { return ask(t, b, tool, args, task).Allows() }
			free, a, b, ab := judge(without), judge(first), judge(second), judge(both)
			if a && !free || b && !free || ab != (a && b) {
				t.Fatalf("%s %s of task %+v: without %v, first %v, second %v, both %v\n%+v\n%+v",
					tool, args, task, free, a, b, ab, one, two)
			}
			seen[fmt.Sprint(free, a, b)]++
		}
	}
	for _, combination := range []string{
		"false false false", "true false false", "true true false", "true false true", "true true true",
	} {
		if seen[combination] < 20 {
			t.Errorf("without, first and second were %s in %d calls, want 20: the draw shows nothing",
				combination, seen[combination])
		}
	}
}
