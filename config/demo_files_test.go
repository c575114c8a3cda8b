package config_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/config"
	"pgfsm/policy/canonical"
)

func mustParse(tb testing.TB, doc []byte) any {
	tb.Helper()
	if err := canonical.Check(doc, 0); err != nil {
		tb.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func mustCompile(tb testing.TB, name string) *jsonschema.Schema {
	tb.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, mustParse(tb, mustRead(tb, name))); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func schemaFiles(tb testing.TB) []string {
	tb.Helper()
	names, err := fs.Glob(config.Demo, "schemas/*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("Glob = %v, %v, want schemas", names, err)
	}
	return names
}

func TestHeader(t *testing.T) {
	const want = "# yaml-language-server: $schema=../docs/reference/pgfsm.schema.json\n"
	if got := mustRead(t, config.FileName); !bytes.HasPrefix(got, []byte(want)) {
		t.Errorf("pgfsm.yaml begins %.70q, want %q", got, want)
	}
}

func TestServers(t *testing.T) {
	d := mustDemo(t)
	for i, name := range []string{"mcp-sharepoint", "mcp-servicenow", "mcp-policy-kb"} {
		want := fmt.Sprintf("http://127.0.0.1:%d/sse", 5101+i)
		if got := d.Servers[name]; got.Type != "sse" || got.URL != want {
			t.Errorf("server %s = %+v, want type sse at %s", name, got, want)
		}
	}
	if len(d.Servers) != 3 {
		t.Errorf("servers = %d, want 3", len(d.Servers))
	}
}

func TestAllowlistIsTheReadingTools(t *testing.T) {
	d := mustDemo(t)
	var got map[string][]string
	if err := canonical.Unmarshal(mustRead(t, d.Allowlist), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"mcp-sharepoint": {"search_sharepoint", "fetch_sharepoint_doc"},
		"mcp-servicenow": {"search_servicenow_tickets", "get_ticket"},
		"mcp-policy-kb":  {"search_policy_kb", "fetch_policy_entry"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allowlist (-want +got):\n%s", diff)
	}
}

func TestEachAllowedToolHasAType(t *testing.T) {
	d := mustDemo(t)
	var allowed map[string][]string
	if err := canonical.Unmarshal(mustRead(t, d.Allowlist), &allowed); err != nil {
		t.Fatal(err)
	}
	var used []string
	for server, tools := range allowed {
		for _, tool := range tools {
			file := d.Outputs[server][tool]
			if file == "" {
				t.Errorf("outputs of %s: no type for %s", server, tool)
			}
			used = append(used, file)
		}
	}
	slices.Sort(used)
	if diff := cmp.Diff(schemaFiles(t), used); diff != "" {
		t.Errorf("schemas that are there and those that are used (-there +used):\n%s", diff)
	}
}

func TestSchemasAreClosed(t *testing.T) {
	for _, name := range schemaFiles(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(name, "schemas/"), ".json"), func(t *testing.T) {
			mustCompile(t, name)
			root := mustParse(t, mustRead(t, name)).(map[string]any)
			if got, want := root["$schema"], "https://json-schema.org/draft/2020-12/schema"; got != want {
				t.Errorf("$schema = %v, want %s", got, want)
			}
			if open := openObjects("", root); len(open) > 0 {
				t.Errorf("objects that admit any key: %q", open)
			}
		})
	}
	t.Run("an-open-object-is-found", func(t *testing.T) {
		doc := []byte(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":["object","null"]}}}`)
		want := []string{"/properties/a"}
		if diff := cmp.Diff(want, openObjects("", mustParse(t, doc))); diff != "" {
			t.Errorf("openObjects(%s) (-want +got):\n%s", doc, diff)
		}
	})
}

// openObjects returns where a schema allows an object without saying that no other keys may come.
func openObjects(at string, schema any) []string {
	var open []string
	switch s := schema.(type) {
	case map[string]any:
		types := fmt.Sprint(s["type"])
		if strings.Contains(types, "object") && s["additionalProperties"] != false {
			open = append(open, at)
		}
		for key, value := range s {
			open = append(open, openObjects(at+"/"+key, value)...)
		}
	case []any:
		for i, value := range s {
			open = append(open, openObjects(fmt.Sprintf("%s/%d", at, i), value)...)
		}
	}
	slices.Sort(open)
	return open
}

func TestSchemasJudge(t *testing.T) {
	const (
		doc = `{"doc_id":"doc-001","title":"T","owner":"O","updated":"2026-01-31","classification":"Public","body":"B"}`
		inc = `{"ticket_id":"INC0010001","title":"T","requester":"R","opened":"2026-01-31","state":"New","priority":1,` +
			`"assignment_group":"G","description":"D"}`
		pol = `{"policy_id":"policy-001","title":"T","owner":"O","effective_date":"2026-01-31","review_cycle_days":1,` +
			`"requirements":["R"],"body":"B"}`
	)
	tests := []struct {
		name, schema, doc string
		ok                bool
	}{
		{"doc-ok", "sharepoint-doc", `{"status":"OK","doc":` + doc + `}`, true},
		{"doc-not-found", "sharepoint-doc", `{"status":"NOT_FOUND","doc":null}`, true},
		{"doc-not-found-with-content", "sharepoint-doc", `{"status":"NOT_FOUND","doc":` + doc + `}`, false},
		{"doc-ok-without-content", "sharepoint-doc", `{"status":"OK","doc":null}`, false},
		{"doc-other-status", "sharepoint-doc", `{"status":"MAYBE","doc":null}`, false},
		{"doc-no-status", "sharepoint-doc", `{"doc":null}`, false},
		{"doc-other-key", "sharepoint-doc", `{"status":"NOT_FOUND","doc":null,"note":"x"}`, false},
		{"doc-other-inner-key", "sharepoint-doc",
			`{"status":"OK","doc":` + strings.Replace(doc, `{`, `{"x":1,`, 1) + `}`, false},
		{"doc-key-missing", "sharepoint-doc", `{"status":"OK","doc":{"doc_id":"doc-001"}}`, false},
		{"doc-date-with-time", "sharepoint-doc",
			`{"status":"OK","doc":` + strings.Replace(doc, "-31", "-31T00", 1) + `}`, false},
		{"ticket-ok", "servicenow-ticket", `{"status":"OK","ticket":` + inc + `}`, true},
		{"ticket-resolution", "servicenow-ticket",
			`{"status":"OK","ticket":` + strings.Replace(inc, `{`, `{"resolution":"done",`, 1) + `}`, true},
		{"ticket-not-found", "servicenow-ticket", `{"status":"NOT_FOUND","ticket":null}`, true},
		{"ticket-not-found-with-content", "servicenow-ticket", `{"status":"NOT_FOUND","ticket":` + inc + `}`, false},
		{"ticket-priority-6", "servicenow-ticket",
			`{"status":"OK","ticket":` + strings.Replace(inc, `"priority":1`, `"priority":6`, 1) + `}`, false},
		{"policy-ok", "policy-entry", `{"status":"OK","policy":` + pol + `}`, true},
		{"policy-not-found", "policy-entry", `{"status":"NOT_FOUND","policy":null}`, true},
		{"policy-not-found-with-content", "policy-entry", `{"status":"NOT_FOUND","policy":` + pol + `}`, false},
		{"policy-cycle-as-text", "policy-entry",
			`{"status":"OK","policy":` + strings.Replace(pol, `_days":1`, `_days":"1"`, 1) + `}`, false},
		{"hits-none", "policy-search", `{"query":"x","count":0,"hits":[]}`, true},
		{"hits-one", "policy-search",
			`{"query":"x","count":1,"hits":[{"policy_id":"policy-001","title":"T","snippet":"S","score":1}]}`, true},
		{"hits-without-score", "servicenow-search",
			`{"query":"x","count":1,"hits":[{"ticket_id":"INC0010001","title":"T","snippet":"S"}]}`, true},
		{"hits-of-another-server", "sharepoint-search",
			`{"query":"x","count":1,"hits":[{"policy_id":"policy-001","title":"T","snippet":"S"}]}`, false},
		{"hits-null", "sharepoint-search", `{"query":"x","count":0,"hits":null}`, false},
		{"snippet-at-limit", "sharepoint-search", snippet(400), true},
		{"snippet-past-limit", "sharepoint-search", snippet(401), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := mustCompile(t, "schemas/"+tt.schema+".json").Validate(mustParse(t, []byte(tt.doc)))
			if got := err == nil; got != tt.ok {
				t.Errorf("Validate(%.80s) = %v, want ok %t", tt.doc, err, tt.ok)
			}
		})
	}
}

func snippet(n int) string {
	return `{"query":"x","count":1,"hits":[{"doc_id":"doc-001","title":"T","snippet":"` + strings.Repeat("s", n) + `"}]}`
}
