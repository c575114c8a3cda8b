package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
)

func TestReadGrant(t *testing.T) {
	const yaml = `version: 1
tools:
  docs:
    read: {calls: 2, args: {path: {in: [a, 1.0]}, /o/x: {eq: 9007199254740993}, "": {schema: {maxProperties: 2}}}}
`
	const json = `{"version":1,"tools":{"docs":{"read":{"calls":2,"args":{"path":{"in":["a",1.0]},` +
		`"/o/x":{"eq":9007199254740993},"":{"schema":{"maxProperties":2}}}}}}}`
	want := policy.Granted{Server: "docs", Tool: "read", Calls: new(2), Args: []policy.Constraint{
		{At: "/path", Schema: []byte(`{"enum":["a",1.0]}`)}, {At: "/o/x", Schema: []byte(`{"const":9007199254740993}`)},
		{At: "", Schema: []byte(`{"maxProperties":2}`)},
	}}
	for name, text := range map[string]string{"dir/one.yaml": yaml, "dir/two.JSON": json, "dir/json-is-yaml": json} {
		got, err := ReadGrant(name, []byte(text))
		if err != nil {
			t.Errorf("ReadGrant(%s) = %v", name, err)
			continue
		}
		grant := policy.Grant{Name: strings.TrimPrefix(name, "dir/"), Tools: []policy.Granted{want}}
		if diff := cmp.Diff(grant, got); diff != "" {
			t.Errorf("ReadGrant(%s) (-want +got):\n%s", name, diff)
		}
	}
	if g, err := ReadGrant("g.yaml", []byte("\xff")); err == nil || len(g.Tools) > 0 {
		t.Errorf("ReadGrant of what is not UTF-8 = %+v, %v, want an error", g, err)
	}
}

// TestGrantBounds shows that what is just within every bound is read, and that one more is not.
func TestGrantBounds(t *testing.T) {
	many := func(n int, each string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(each, i)
		}
		return strings.Join(items, ", ")
	}
	tools := func(s string) string { return "version: 1\ntools: {" + s + "}\n" }
	read := func(s string) string { return tools("docs: {read: {" + s + "}}") }
	for _, c := range []struct{ name, within, past string }{
		{"servers", tools(many(policy.MaxServers, "s%d: {}")), tools(many(policy.MaxServers+1, "s%d: {}"))},
		{"tools-of-a-server", tools("s: {" + many(policy.MaxGrantTools, "t%d: {}") + "}"),
			tools("s: {" + many(policy.MaxGrantTools+1, "t%d: {}") + "}")},
		{"tools-of-all-servers", tools("r: {t: {}}, s: {" + many(policy.MaxGrantTools-1, "t%d: {}") + "}"),
			tools("r: {t: {}}, s: {" + many(policy.MaxGrantTools, "t%d: {}") + "}")},
		{"arguments", read("args: {" + many(policy.MaxGrantArgs, "a%d: {eq: 1}") + "}"),
			read("args: {" + many(policy.MaxGrantArgs+1, "a%d: {eq: 1}") + "}")},
		{"choices", read("args: {a: {in: [" + many(MaxChoices, "%d") + "]}}"),
			read("args: {a: {in: [" + many(MaxChoices+1, "%d") + "]}}")},
		{"calls", read("calls: 1000000"), read("calls: 1000001")},
		{"fewest-calls", read("calls: 1"), read("calls: 0")},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ReadGrant("g.yaml", []byte(c.within))
			if err != nil {
				t.Errorf("ReadGrant at the bound = %v, want no error", err)
			}
			content := policy.Content{Grants: []policy.Grant{g}}
			if _, err := policy.Compile(content); err != nil && strings.Contains(err.Error(), "grant") {
				t.Errorf("Compile at the bound = %v", err)
			}
			if _, err := ReadGrant("g.yaml", []byte(c.past)); err == nil {
				t.Error("ReadGrant one past the bound = nil, want an error")
			}
		})
	}
	grants := func(n int) string { return minimal + "grants: [" + many(n, "g%d.yaml") + "]\n" }
	if _, err := Parse("c.yaml", []byte(grants(policy.MaxGrants))); err != nil {
		t.Errorf("Parse with %d grants = %v", policy.MaxGrants, err)
	}
	if _, err := Parse("c.yaml", []byte(grants(policy.MaxGrants+1))); err == nil {
		t.Errorf("Parse with %d grants = nil, want an error", policy.MaxGrants+1)
	}
}
