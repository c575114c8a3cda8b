package config_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/config"
	"pgfsm/internal/glob"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A keyword list of what a schema may say. The validator ignores unknown keywords, so a misspelled one would say nothing.
var keywords = strings.Fields(`$schema $ref title description type properties required additionalProperties propertyNames definitions items
	uniqueItems minItems maxItems minProperties maxProperties minLength maxLength pattern enum minimum maximum default examples format
	writeOnly dependencies allOf anyOf not if then x-minimum x-maximum`)

// part is a part of a schema, as the pages show it.
type part struct {
	Ref                  string `json:"$ref"`
	Title                string
	Description          string
	Type                 any
	Default              jsontext.Value
	Examples             []jsontext.Value
	Format               string
	Enum                 []string
	Pattern              string
	Minimum, Maximum     int64
	MinItems, MaxItems   int64
	MinLength, MaxLength int64
	Least                string `json:"x-minimum"`
	Most                 string `json:"x-maximum"`
	MaxProperties        int64
	MinProperties        int64
	Required             []string
	Properties           config.Table[*part]
	Definitions          map[string]*part
	Items                *part
	AdditionalProperties jsontext.Value
}

func schemaOf(t *testing.T, name string) *part {
	t.Helper()
	return parse(t, config.Schema(name))
}

func parse(t *testing.T, text jsontext.Value) *part {
	t.Helper()
	var p part
	if err := json.Unmarshal(text, &p, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	return &p
}

// row is a key of a file.
type row struct {
	*part
	path     string
	required bool
}

// rows lists every key of a schema, in its order.
func rows(t *testing.T, root, p *part, path string) (out []row) {
	t.Helper()
	name, ok := strings.CutPrefix(p.Ref, "#/definitions/")
	switch {
	case name == "constraint": // JSON Schema itself, which is recursive
		return nil
	case ok:
		p = root.Definitions[name]
	}
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	for _, k := range p.Properties {
		out = append(out, row{k.Value, join(k.Name), slices.Contains(p.Required, k.Name)})
		out = append(out, rows(t, root, k.Value, join(k.Name))...)
	}
	if p.Items != nil {
		out = append(out, rows(t, root, p.Items, path+"[]")...)
	}
	if bytes.HasPrefix(p.AdditionalProperties, []byte("{")) {
		out = append(out, rows(t, root, parse(t, p.AdditionalProperties), join("‹"+p.Title+"›"))...)
	}
	return out
}

// describe says what a value is, and its bounds.
func (p *part) describe(t *testing.T) (kind, bounds string) {
	between := func(least, most int64) string {
		switch {
		case least == most:
			return fmt.Sprint(least)
		case least == 0:
			return fmt.Sprintf("at most %d", most)
		}
		return fmt.Sprintf("%d to %d", least, most)
	}
	switch kind := p.Type; {
	case p.Least != "":
		return "duration", p.Least + " to " + p.Most
	case kind == "integer":
		if p.Minimum == 0 {
			return "integer", fmt.Sprintf("0 to %d", p.Maximum)
		}
		return "integer", between(p.Minimum, p.Maximum)
	case kind == "boolean":
		return "boolean", ""
	case kind == "array":
		each, _ := p.Items.describe(t)
		return "list of " + each, between(p.MinItems, p.MaxItems)
	case kind == "object" && p.MaxProperties > 0:
		each, _ := parse(t, p.AdditionalProperties).describe(t)
		return "object: " + p.Title + " to " + each, between(p.MinProperties, p.MaxProperties)
	case kind == "string" && len(p.Enum) > 0:
		return "text", "`" + strings.Join(p.Enum, "`, `") + "`"
	case kind == "string" && p.MaxLength > 0:
		return "text", between(1, p.MaxLength) + " bytes"
	case kind == "string":
		return "text", ""
	case kind == "object", p.Ref != "":
		return "object", ""
	case kind == nil:
		return cmp.Or(p.Title, "any value"), ""
	}
	return strings.Trim(strings.NewReplacer(" ", " or ", "string", "text", "array", "list").Replace(fmt.Sprint(p.Type)), "[]"), ""
}

// text is a value as YAML that is JSON, or as plain text.
func text(v jsontext.Value) string {
	if err := v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)); err != nil {
		return err.Error()
	}
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).ReplaceAllStringFunc(string(v), func(s string) string {
		if plain := s[1 : len(s)-1]; regexp.MustCompile(`^[A-Za-z0-9./_-]*[A-Za-z][A-Za-z0-9./_:-]*$`).MatchString(plain) {
			return plain
		}
		return s
	})
}

func keyTable(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| Key | Type | Default | Bounds | Meaning |\n| --- | --- | --- | --- | --- |\n")
	root := schemaOf(t, name)
	for _, r := range rows(t, root, root, "") {
		kind, bounds := r.describe(t)
		initial, doc := "", r.Description
		switch {
		case r.required:
			initial = "required"
		case r.Default != nil && string(r.Default) != "{}":
			initial = "`" + text(r.Default) + "`"
		}
		if len(r.Examples) > 0 && !r.required {
			doc += " Example: `" + text(r.Examples[0]) + "`"
		}
		cells := []string{"`" + r.path + "`", kind, initial, bounds, doc}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// TestKeysAreDocumented generates the tables of the pages.
func TestKeysAreDocumented(t *testing.T) {
	for _, c := range []struct{ page, section, schema string }{
		{"configuration.md", "keys", "pgfsm"},
		{"policy-language.md", "keys of risk.yaml", "risk"},
		{"policy-language.md", "keys of policy.yaml", "policy"},
		{"policy-language.md", "keys of tests", "tests"},
		{"policy-language.md", "keys of claims.yaml", "claims"},
		{"policy-language.md", "keys of labels.yaml", "labels"},
	} {
		t.Run(c.schema, func(t *testing.T) {
			golden.Section(t, "../../docs/reference/"+c.page, "<!-- "+c.section+": generated -->\n", "<!-- "+c.section+": end -->\n", keyTable(t, c.schema))
		})
	}
}

// TestSchemasSayWhatTheValidatorReads: draft 7, known keywords only, and a sentence about every key.
func TestSchemasSayWhatTheValidatorReads(t *testing.T) {
	for _, name := range config.SchemaNames() {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			if err := json.Unmarshal(config.Schema(name), &doc); err != nil {
				t.Fatal(err)
			}
			if doc["$schema"] != "http://json-schema.org/draft-07/schema#" {
				t.Errorf("$schema is %v, want draft 7", doc["$schema"])
			}
			var check func(any, bool)
			check = func(v any, named bool) { // named: the keys are names, not keywords
				object, _ := v.(map[string]any)
				for key, value := range object {
					if !named && !slices.Contains(keywords, key) {
						t.Errorf("the keyword %q is not known to the validator", key)
					}
					switch key {
					case "default", "examples", "enum":
						if !named {
							continue
						}
					}
					check(value, !named && (key == "properties" || key == "definitions" || key == "dependencies"))
				}
			}
			check(doc, false)
			root := schemaOf(t, name)
			for _, r := range rows(t, root, root, "") {
				if !strings.HasSuffix(r.Description, ".") {
					t.Errorf("%s: %q is not a sentence", r.path, r.Description)
				}
			}
		})
	}
	if config.Schema("other") != nil {
		t.Error("there is a schema of a kind of file that does not exist")
	}
}

// TestSchemasHaveTheBoundsOfThePackages: a bound that another package has too is the same.
func TestSchemasHaveTheBoundsOfThePackages(t *testing.T) {
	all := map[string]map[string]*part{}
	for _, name := range config.SchemaNames() {
		root := schemaOf(t, name)
		all[name] = map[string]*part{}
		for _, r := range rows(t, root, root, "") {
			all[name][r.path] = r.part
		}
	}
	hour := func(n int64) string { return fmt.Sprintf("%dh", n/3_600_000) }
	for _, c := range []struct {
		schema, key string
		want        any
	}{
		{"pgfsm", "servers", policy.MaxServers},
		{"pgfsm", "planner.routes", policy.MaxRoutes},
		{"pgfsm", "grants", policy.MaxGrants},
		{"pgfsm", "input.max_bytes", policy.MaxInputBytes},
		{"pgfsm", "planner.llm.max_tokens", policy.MaxTokens},
		{"pgfsm", "limits.plan_bytes", policy.MaxPlanBytes},
		{"pgfsm", "limits.arguments_bytes", policy.MaxArgumentsBytes},
		{"pgfsm", "limits.json_depth", policy.MaxJSONDepth},
		{"pgfsm", "limits.result_bytes", policy.MaxResultBytes},
		{"pgfsm", "limits.run_timeout", hour(policy.MaxRunTimeout)},
		{"pgfsm", "servers.‹server›.timeout", hour(policy.MaxRunTimeout)},
		{"grant", "tools.‹server›.‹tool›.calls", policy.MaxGrantCalls},
		{"grant", "tools.‹server›.‹tool›.args", policy.MaxGrantArgs},
		{"policy", "policies", rules.MaxPolicies},
		{"policy", "policies[].match.tool", glob.MaxPattern},
		{"policy", "policies[].when", condition.MaxSource},
		{"risk", "modes", risk.MaxModes},
		{"risk", "vars", risk.MaxVars},
		{"risk", "rules", risk.MaxRules},
		{"risk", "rules[].when.args", risk.MaxPredicates},
		{"risk", "rules[].when.args.‹path›.in", condition.MaxIn},
		{"risk", "rules[].when.args.‹path›.matches", condition.MaxPattern},
		{"risk", "set_mode_by_score", risk.MaxThresholds},
		{"tests", "tests", config.MaxPolicyTests},
		{"claims", "claims", config.MaxClaims},
		{"claims", "claims[].when", condition.MaxSource},
		{"labels", "tools[].items", origin.MaxPattern},
		{"labels", "tools[].trusted_if", condition.MaxSource},
	} {
		p := all[c.schema][c.key]
		if p == nil {
			t.Errorf("%s has no %s", c.schema, c.key)
		} else if got := p.most(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %s is at most %v, want %v", c.schema, c.key, got, c.want)
		}
	}
	ops := schemaOf(t, "risk")
	var got []string
	for _, r := range rows(t, ops, ops, "") {
		if op, ok := strings.CutPrefix(r.path, "rules[].when.args.‹path›."); ok {
			got = append(got, op)
		}
	}
	if !slices.Equal(got, condition.Ops()) {
		t.Errorf("the ops of a predicate are %q, want %q", got, condition.Ops())
	}
}

func (p *part) most() any {
	if p.Most != "" {
		return p.Most
	}
	return max(p.Maximum, p.MaxLength, p.MaxItems, p.MaxProperties)
}

// TestStarter shows that the starter is valid as it is, and with everything switched on that is switched off in it, and
// that every key is in it.
func TestStarter(t *testing.T) {
	files, err := config.StarterFiles("")
	if err != nil {
		t.Fatal(err)
	}
	starter := files[0].Text
	full := bytes.ReplaceAll(starter, []byte("#-"), nil)
	if bytes.Equal(full, starter) {
		t.Fatal("nothing is switched off in the starter; the test shows nothing")
	}
	for name, yaml := range map[string][]byte{"as-it-is": starter, "all-switched-on": full} {
		t.Run(name, func(t *testing.T) {
			l, err := load(map[string]string{
				"pgfsm.yaml": string(yaml), "allowlist.json": string(files[1].Text),
				"schemas/policy-entry.json": "{}", "schemas/read-file.json": `{"type": "object"}`,
				"grant.yaml": "version: 1\ntools: {}\n", "risk.yaml": "version: 1\n", "policy.yaml": "version: 1\npolicies: []\n",
				"claims.yaml": "version: 1\nclaims: [{id: a, never: allow}]\n", "labels.yaml": "version: 1\n",
			})
			if err != nil {
				t.Fatal(err)
			}
			unpinned := func(warning string) bool {
				return strings.Contains(warning, `this schema is for "read_file", which is not pinned`)
			}
			if others := slices.DeleteFunc(l.Warnings, unpinned); len(others) > 0 {
				t.Errorf("warnings: %q", others)
			}
		})
	}
	root := schemaOf(t, "pgfsm")
	for _, r := range rows(t, root, root, "") {
		if name := r.path[strings.LastIndex(r.path, ".")+1:]; !bytes.Contains(full, []byte(name+":")) {
			t.Errorf("the starter has no %s", r.path)
		}
	}
}

// load loads pgfsm.yaml of a map of files.
func load(files map[string]string) (*config.Loaded, error) {
	return config.Load("pgfsm.yaml", func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}, config.Overrides{})
}

// TestDocumentedExamplesAreValid reads the examples of the page: a configuration and a grant.
func TestDocumentedExamplesAreValid(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	fences := strings.Split(string(page), "```yaml\n")[1:]
	found := map[string]string{}
	for _, f := range fences {
		example, _, _ := strings.Cut(f, "```")
		if strings.Contains(example, "servers:") && found["pgfsm.yaml"] == "" {
			found["pgfsm.yaml"] = example
		} else if strings.Contains(example, "tools:") && found["grant.yaml"] == "" {
			found["grant.yaml"] = example
		}
	}
	_, err = load(map[string]string{"pgfsm.yaml": found["pgfsm.yaml"]})
	for _, e := range faultsOf(err) {
		if !strings.Contains(e.Problem, "cannot be read") { // the files that it names
			t.Error(e)
		}
	}
	g, err := config.ReadGrant("grant.yaml", []byte(found["grant.yaml"]))
	if err != nil || len(g.Tools) != 2 || len(g.Tools[0].Args) != 3 {
		t.Errorf("ReadGrant of the example = %+v, %v, want two tools and three constraints", g, err)
	}
}

func faultsOf(err error) config.Errors {
	all, _ := err.(config.Errors)
	return all
}
