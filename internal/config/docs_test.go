package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/golden"
	"pgfsm/policy"
)

const document = "../../docs/reference/configuration.md"

type row struct {
	key
	path string
}

// rows lists every key below a shape, in the order of the definition.
func rows(s *shape, path string) []row {
	switch s.form {
	case table:
		return rows(s.each, join(path, "‹"+s.what+"›"))
	case list:
		return rows(s.each, path+"[]")
	}
	var out []row
	for _, k := range s.keys {
		at := join(path, k.name)
		out = append(out, row{k, at})
		out = append(out, rows(k.shape, at)...)
	}
	return out
}

// kind is what a shape is, for people.
func (s *shape) describe() (typ, bounds string) {
	switch s.form {
	case text:
		typ = "text"
		if len(s.enum) > 0 {
			return typ, "`" + strings.Join(s.enum, "`, `") + "`"
		}
		return typ, fmt.Sprintf("1 to %d bytes", s.longest())
	case integer:
		return "integer", between(s.min, s.max)
	case duration:
		return "duration", writeDuration(s.min) + " to " + writeDuration(s.max)
	case boolean:
		return "boolean", ""
	case anyJSON:
		if s.what != "" {
			return s.what, ""
		}
		return "any value", ""
	case list:
		each, _ := s.each.describe()
		if s.min > 0 {
			return "list of " + each, between(s.min, s.max)
		}
		return "list of " + each, fmt.Sprintf("at most %d", s.max)
	case table:
		each, _ := s.each.describe()
		return "object: " + s.what + " to " + each, fmt.Sprintf("%d to %d", s.min, s.max)
	}
	return "object", ""
}

func keyTable(of *shape) string {
	var b strings.Builder
	b.WriteString("| Key | Type | Default | Bounds | Meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows(of, "") {
		typ, bounds := r.shape.describe()
		initial := ""
		switch {
		case r.required:
			initial = "required"
		case r.initial != "":
			initial = "`" + r.initial + "`"
		}
		doc := r.doc
		if r.example != "" && !r.required {
			doc += " Example: `" + r.example + "`"
		}
		cells := []string{"`" + r.path + "`", typ, initial, bounds, doc}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func TestKeyTableIsDocumented(t *testing.T) { generated(t, document, "keys", keyTable(configuration)) }

// generated holds a part of a document to what it is made from.
func generated(t *testing.T, document, what, want string) {
	t.Helper()
	golden.Section(t, document, "<!-- "+what+": generated -->\n", "<!-- "+what+": end -->\n", want)
}

// everyKey are the keys of all files that a person writes.
func everyKey() []row {
	return slices.Concat(rows(configuration, ""), rows(riskFile, ""), rows(policyFile, ""), rows(policyTests, ""))
}

// TestEveryKeyIsExplained: a key without a sentence is not finished.
func TestEveryKeyIsExplained(t *testing.T) {
	all := everyKey()
	if len(all) < 70 {
		t.Fatalf("%d keys, want at least 70", len(all))
	}
	for _, r := range all {
		if !strings.HasSuffix(r.doc, ".") {
			t.Errorf("%s: %q is not a sentence", r.path, r.doc)
		}
	}
}

// TestDocumentedExampleIsValid reads the example of the document.
func TestDocumentedExampleIsValid(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("%s has no example", document)
	}
	if _, err := Parse("example.yaml", []byte(example)); err != nil {
		t.Error(err)
	}
}

// TestDocumentedGrantIsValid reads the example of a grant file, and holds the bounds that are told to those that are.
func TestDocumentedGrantIsValid(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Grants\n")
	_, rest, begins := strings.Cut(section, "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !begins || !closed {
		t.Fatalf("%s has no example of a grant", document)
	}
	g, err := ReadGrant("example.yaml", []byte(example))
	if err != nil || len(g.Tools) != 2 || len(g.Tools[0].Args) != 3 {
		t.Errorf("ReadGrant = %+v, %v, want two tools and three constraints", g, err)
	}
	told := fmt.Sprintf("at most %d servers, %d tools in all, %d names in `args`, %d values in `in`. `calls` is 1 to %d. "+
		"At most %d grants",
		policy.MaxServers, policy.MaxGrantTools, policy.MaxGrantArgs, MaxChoices, policy.MaxGrantCalls, policy.MaxGrants)
	if !strings.Contains(strings.Join(strings.Fields(section), " "), told) {
		t.Errorf("%s does not say %q", document, told)
	}
}

// TestExamplesAreValid reads the example of every key in the place where it belongs.
func TestExamplesAreValid(t *testing.T) {
	for _, r := range everyKey() {
		if r.example == "" {
			continue
		}
		src, text := checkText("example.yaml", []byte("example: "+r.example+"\n"))
		root := readYAML(src, text, "")
		if root == nil {
			t.Errorf("%s: %v", r.path, src.err())
			continue
		}
		src.judge(root, &shape{form: object, keys: []key{{name: "example", shape: r.shape}}})
		if err := src.err(); err != nil {
			t.Errorf("%s: %v", r.path, err)
		}
	}
}
