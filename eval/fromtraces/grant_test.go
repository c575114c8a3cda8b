package fromtraces

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
)

// demo is the bundle of the demo's configuration, changed.
func demo(t *testing.T, change func(*policy.Content)) *policy.Content {
	t.Helper()
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	change(&loaded.Content)
	return &loaded.Content
}

func grantOf(args ...policy.Constraint) policy.Grant {
	three := 3
	return policy.Grant{Name: "any.yaml", Tools: []policy.Granted{
		{Server: "mcp-policy-kb", Tool: "search_policy_kb", Calls: &three}, {Server: "mcp-policy-kb", Tool: "fetch_policy_entry", Args: args},
	}}
}

func at(place, schema string) policy.Constraint {
	return policy.Constraint{At: place, Schema: jsontext.Value(schema)}
}

func TestGrantsAreReadBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []policy.Constraint
		cannot bool
	}{
		{"free", nil, false},
		{"eq", []policy.Constraint{at("/policy_id", `{"const":"policy-002"}`)}, false},
		{"in", []policy.Constraint{at("/policy_id", `{"enum":["policy-001","policy-002"]}`)}, false},
		{"schema", []policy.Constraint{at("/policy_id", `{"pattern":"^policy-00[12]$","type":"string"}`)}, false},
		{"several-places", []policy.Constraint{at("/b/c", `{"const":1}`), at("/a", `{"type":"string"}`)}, false},
		{"several-of-one-place", []policy.Constraint{at("/a", `{"const":1}`), at("/a", `{"enum":[1,2]}`), at("/a", `{"type":"number"}`)}, false},
		{"the-whole", []policy.Constraint{at("", `{"additionalProperties":false,"properties":{"policy_id":{}}}`)}, false},
		{"two-schemas-of-one-place", []policy.Constraint{at("/a", `{"type":"number"}`), at("/a", `{"minimum":1}`)}, true},
		{"a-place-twice-apart", []policy.Constraint{at("/a", `{"const":1}`), at("/b", `{"const":1}`), at("/a", `{"enum":[1]}`)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := grantOf(tt.args...)
			g.Name = ""
			if doc, err := encodeGrant(&g); errors.Is(err, errNoGrant) != tt.cannot || err != nil && !tt.cannot {
				t.Errorf("encodeGrant() = %s, %v", doc, err)
			}
		})
	}
}

// TestDivideKeepsTheOriginal: the bundle that a run holds is not touched.
func TestDivideKeepsTheOriginal(t *testing.T) {
	c := demo(t, func(c *policy.Content) { c.Grants = []policy.Grant{grantOf(), grantOf()} })
	was := *demo(t, func(c *policy.Content) { c.Grants = []policy.Grant{grantOf(), grantOf()} })
	d := divide(c)
	if diff := cmp.Diff(&was, c); diff != "" {
		t.Errorf("the bundle changed (-was +is):\n%s", diff)
	}
	if len(d.content.Grants) != 1 || d.grant == nil || d.grant.Name != "" {
		t.Errorf("divide() = %d grants and %v, want one and one", len(d.content.Grants), d.grant)
	}
}

func TestNameOf(t *testing.T) {
	const run = "01a1fd20-a47b-755b-89de-7c5c3de87485"
	most := strings.Repeat("a", maxNameBytes)
	for _, tt := range []struct {
		name string
		call eval.Call
		want string
	}{
		{"a-plan", eval.Call{Plan: new(canonical.Text)}, "input_denied/" + run},
		{"invisible-characters", eval.Call{Tool: "get\x1b[2J\u202e\u00a0"}, `get\u001b[2J\u202e\u00a0/` + run},
		{"as-long-as-fits", eval.Call{Tool: most}, most + "/" + run},
		{"cut-between-characters", eval.Call{Tool: most[1:] + "é"}, most[1:] + "…/" + run},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := nameOf(&tt.call, policy.CodeInputDenied, run); got != tt.want || len(got) > eval.MaxIDBytes {
				t.Errorf("nameOf() = %s, want %s", got, tt.want)
			}
		})
	}
}
