package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy/condition"
)

const (
	manual   = "../../docs/reference/policy-language.md"
	tutorial = "../../docs/guide/policies.md"
	origins  = "../../docs/guide/origin.md"
)

func nameTable() string {
	var b strings.Builder
	b.WriteString("| Name | Type | Where | Meaning |\n| --- | --- | --- | --- |\n")
	for _, n := range condition.Names() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n.Name, n.Type, n.Where, n.Meaning)
	}
	return b.String()
}

func TestManualTables(t *testing.T) {
	golden.Section(t, manual, "<!-- names: generated -->\n", "<!-- names: end -->\n", nameTable())
}

// TestManualHasEveryOp holds the table of ops to the ops, in their order.
func TestManualHasEveryOp(t *testing.T) {
	text, err := os.ReadFile(manual)
	check.NoError(t, err)
	_, rest, begins := strings.Cut(string(text), "<!-- ops -->\n")
	table, _, ends := strings.Cut(rest, "<!-- ops: end -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no table of ops", manual)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(condition.Ops(), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", manual, diff)
	}
}

// examples are the files that the tutorials and the manual show, in order, by the name in their first line.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	var text strings.Builder
	for _, page := range []string{tutorial, manual, origins} {
		part, err := os.ReadFile(page)
		check.NoError(t, err)
		text.Write(part)
	}
	out := make(map[string][]string)
	fences := regexp.MustCompile("(?ms)^```yaml\n# (.*?)\n(.*?)^```$").FindAllStringSubmatch(text.String(), -1)
	for _, fence := range fences {
		out[fence[1]] = append(out[fence[1]], fence[2])
	}
	if n := strings.Count(text.String(), "```yaml\n"); n != len(fences) || n != 11 || len(out["policy.yaml"]) != 5 {
		t.Fatalf("the pages have %d examples, %d named, want 11", n, len(fences))
	}
	return out
}

// TestManualExamplesAreValid reads every example.
func TestManualExamplesAreValid(t *testing.T) {
	shown := examples(t)
	for _, text := range shown["policy.yaml"] {
		if _, _, err := ReadPolicy("policy.yaml", []byte(text)); err != nil {
			t.Error(err)
		}
	}
	files := map[string]string{"allowlist.json": "{}"}
	for name, texts := range shown {
		files[name] = texts[0]
	}
	_, err := Load("pgfsm.yaml", openMap(files), Overrides{})
	check.NoError(t, err)
	if _, err := ReadPolicyTests("tests.yaml", []byte(files["tests.yaml"]), nil); err != nil {
		t.Error(err)
	}
	if _, err := ReadClaims("claims.yaml", []byte(files["claims.yaml"])); err != nil {
		t.Error(err)
	}
	for _, text := range shown["labels.yaml"] {
		if _, _, err := ReadLabels("labels.yaml", []byte(text), "email"); err != nil {
			t.Error(err)
		}
	}
}
