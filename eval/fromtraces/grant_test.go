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

func at(place, schema string) policy.Constraint {
	return policy.Constraint{At: place, Schema: jsontext.Value(schema)}
}

// TestGrantsAreReadBack: a grant file has the content of the grant, or there is none.
func TestGrantsAreReadBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []policy.Constraint
		cannot bool
	}{
		{"free", nil, false},
		{"several-places", []policy.Constraint{at("/a", `{"type":"string"}`), at("/b/c", `{"const":1}`)}, false},
		{"the-whole", []policy.Constraint{at("", `{"additionalProperties":false,"properties":{"policy_id":{}}}`)}, false},
		{"two-schemas-of-one-place", []policy.Constraint{at("/a", `{"type":"number"}`), at("/a", `{"minimum":1}`)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := policy.Grant{Tools: []policy.Granted{
				{Server: "mcp-policy-kb", Tool: "fetch_policy_entry", Args: tt.args},
				{Server: "mcp-policy-kb", Tool: "search_policy_kb", Calls: new(3)},
			}}
			doc, err := encodeGrant(&g)
			var none errNoCase
			if errors.As(err, &none) != tt.cannot || err != nil && !tt.cannot {
				t.Fatalf("encodeGrant() = %s, %v", doc, err)
			}
			if tt.cannot {
				return
			}
			read, err := config.ReadGrant("grant.json", doc)
			read.Name = ""
			if d := cmp.Diff(g, read); d != "" || err != nil {
				t.Errorf("the file says something else, %v (-want +got):\n%s", err, d)
			}
		})
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
