package config

import (
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
