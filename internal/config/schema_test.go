package config

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"golang.org/x/tools/txtar"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/golden"
)

func strictJSON(doc []byte) error { return canonical.Check(doc, MaxDepth) }

const publishedSchema = "../../docs/reference/pgfsm.schema.json"

func TestSchemaIsPublished(t *testing.T) { golden.File(t, publishedSchema, append(Schema(), '\n')) }

func compiledSchema(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	s, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a YAML text as an editor's validator sees it; ok is false for what is not YAML to us.
func asJSON(text []byte) (doc []byte, ok bool) {
	src, clean := checkText("c.yaml", text)
	if clean == nil {
		return nil, false
	}
	root := readYAML(src, clean, "")
	if root == nil || len(src.faults) > 0 {
		return nil, false
	}
	return root.json(), true
}

// TestSchemaAgreesWithParse shows that what the published schema refuses, Parse refuses, and that it refuses what a
// schema can.
func TestSchemaAgreesWithParse(t *testing.T) {
	s := compiledSchema(t)
	refused := make(map[string]bool)
	names, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := a.Files[0].Data
		doc, ok := asJSON(text)
		if !ok {
			continue
		}
		result, err := s.Validate(gojsonschema.NewBytesLoader(doc))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, parsed := Parse("c.yaml", text)
		if !result.Valid() {
			refused[strings.TrimSuffix(filepath.Base(name), ".txtar")] = true
			if parsed == nil {
				t.Errorf("%s: the schema refuses what Parse accepts: %v", name, result.Errors())
			}
		}
	}
	for _, name := range []string{
		"unknown-key-near", "unknown-key-in-a-list", "missing-version", "missing-servers", "missing-allowlist", "version-two",
		"env-is-a-number", "limits-is-a-list", "limit-one-past", "zero-limit", "unknown-choice-far", "no-servers",
		"duration-in-days", "server-name-with-double-underscore", "server-without-anything", "server-with-url-and-command",
		"stdio-with-url", "http-with-command", "unknown-server-type", "url-with-another-scheme", "header-name-with-space",
		"header-is-a-number", "env-name-with-dash", "args-is-text", "deny-without-reason", "route-args-is-a-list",
		"allowlist-inline", "server-name-too-long", "ledger-of-another-kind",
	} {
		if !refused[name] {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

// TestStarter shows that the starter is valid as it is, and with everything switched on that is switched off in it, and
// that every key stands in it.
func TestStarter(t *testing.T) {
	full := bytes.ReplaceAll(Starter(), []byte("#-"), nil)
	if bytes.Equal(full, Starter()) {
		t.Fatal("nothing is switched off in the starter; the test shows nothing")
	}
	for name, text := range map[string][]byte{"as-it-is": Starter(), "all-switched-on": full} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"pgfsm.yaml": string(text), "allowlist.json": string(StarterAllowlist()), "schemas/policy-entry.json": "{}", "schemas/read-file.json": `{"type": "object"}`,
				"grant.yaml": "version: 1\ntools: {}\n",
				"risk.yaml":  "version: 1\n", "policy.yaml": "version: 1\npolicies: []\n",
				".mcp.json": `{"mcpServers": {"memory": ` +
					`{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}}`,
			}
			l, err := Load("pgfsm.yaml", openMap(files), Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			unpinned := func(warning string) bool {
				return strings.Contains(warning, `this schema is for "read_file", which is not pinned`)
			}
			if others := slices.DeleteFunc(l.Warnings, unpinned); len(others) > 0 {
				t.Errorf("warnings: %q", others)
			}
			doc, _ := asJSON(text)
			result, err := compiledSchema(t).Validate(gojsonschema.NewBytesLoader(doc))
			if err != nil || !result.Valid() {
				t.Errorf("the schema refuses it: %v %v", err, result.Errors())
			}
		})
	}
	doc, ok := asJSON(full)
	if !ok {
		t.Fatal("the starter is not YAML")
	}
	for _, row := range rows(configuration, "") {
		name := row.name
		if !bytes.Contains(doc, []byte(`"`+name+`":`)) {
			t.Errorf("the starter has no %s", row.path)
		}
	}
}
