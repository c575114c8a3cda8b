package config_test

import (
	"io/fs"
	"strings"
	"testing"

	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/schema"
)

// TestDemo: the configuration that is built in says what the pages say of it, and is held to what every one is held to.
func TestDemo(t *testing.T) {
	const header = "# yaml-language-server: $schema=pgfsm.schema.json\n"
	if text, err := config.Demo.ReadFile(config.FileName); err != nil || !strings.HasPrefix(string(text), header) {
		t.Errorf("pgfsm.yaml begins %.70q, %v, want %q", text, err, header)
	}
	loaded := demo(t)
	if len(loaded.Warnings) > 0 {
		t.Errorf("warnings: %q", loaded.Warnings)
	}
	if _, err := policy.Compile(loaded.Content); err != nil {
		t.Error(err)
	}
	typed := map[string]bool{}
	for _, output := range loaded.Content.Outputs {
		typed[output.Server+"/"+output.Tool] = true
		s, err := schema.Compile(output.Schema, schema.DefaultLimits())
		if err != nil {
			t.Errorf("type of %s: %v", output.Tool, err)
			continue
		}
		if open := s.Open(); len(open) > 0 {
			t.Errorf("type of %s leaves %q open", output.Tool, open)
		}
	}
	for _, a := range loaded.Content.Allowlist {
		for _, tool := range a.Tools {
			if !typed[a.Server+"/"+tool] {
				t.Errorf("%s of %s has no type", tool, a.Server)
			}
		}
	}
	if files, err := fs.Glob(config.Demo, "schemas/*.json"); err != nil || len(files) != len(typed) {
		t.Errorf("%d schemas are there, %v, and %d are used", len(files), err, len(typed))
	}
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
		{"doc-not-found-with-content", "sharepoint-doc", `{"status":"NOT_FOUND","doc":` + doc + `}`, false},
		{"doc-ok-without-content", "sharepoint-doc", `{"status":"OK","doc":null}`, false},
		{"doc-other-inner-key", "sharepoint-doc",
			`{"status":"OK","doc":` + strings.Replace(doc, `{`, `{"x":1,`, 1) + `}`, false},
		{"ticket-ok", "servicenow-ticket", `{"status":"OK","ticket":` + inc + `}`, true},
		{"hits-one", "policy-search",
			`{"query":"x","count":1,"hits":[{"policy_id":"policy-001","title":"T","snippet":"S","score":1}]}`, true},
		{"hits-of-another-server", "sharepoint-search",
			`{"query":"x","count":1,"hits":[{"policy_id":"policy-001","title":"T","snippet":"S"}]}`, false},
		{"snippet-past-limit", "sharepoint-search", snippet(401), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := config.Demo.ReadFile("schemas/" + tt.schema + ".json")
			check.NoError(t, err)
			s, err := schema.Compile(text, schema.DefaultLimits())
			check.NoError(t, err)
			if err := s.Judge([]byte(tt.doc)); (err == nil) != tt.ok {
				t.Errorf("Judge(%.80s) = %v, want ok %t", tt.doc, err, tt.ok)
			}
		})
	}
}

func snippet(n int) string {
	return `{"query":"x","count":1,"hits":[{"doc_id":"doc-001","title":"T","snippet":"` + strings.Repeat("s", n) + `"}]}`
}
