package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func loadedPolicies(t *testing.T) *Loaded {
	t.Helper()
	a, err := txtar.ParseFile("testdata/good/policy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Load("pgfsm.yaml", archive(a), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPlaces(t *testing.T) {
	l := loadedPolicies(t)
	for _, c := range []struct {
		list string
		i    int
		key  string
		want string // what stands there
	}{
		{"policies", -1, "", "- id: no-deletes"},
		{"policies", 0, "", "id: no-deletes"},
		{"policies", 0, "id", "no-deletes"},
		{"policies", 0, "match.tool", `"delete_*"`},
		{"policies", 0, "when", "id: no-deletes"},
		{"policies", 1, "match.server", `docs, tool: "?ay"`},
		{"policies", 1, "when", ">-"},
		{"policies", 1, "deny", "'!pinned'"},
		{"policies", 1, "approvers", "[release-manager]"},
		{"policies", 1, "expires", "1h30m"},
		{"policies", 2, "mode", "shadow"},
		{"policies", 9, "id", "- id: no-deletes"},
		{"modes", 1, "name", "tense: 40"},
		{"modes", 1, "baseline", "40, grave"},
		{"initial", -1, "", "tense"},
		{"vars", 1, "name", "weight"},
		{"vars", 1, "expr", "vars.rows / 10.0"},
		{"rules", 0, "match.tool", `"get_*"`},
		{"rules", 1, "match.env", "prod*"},
		{"rules", 1, "args", "amount: {gte"},
		{"rules", 1, "args[1].value", "9007199254740993"},
		{"rules", 1, "args[2].path", "/to/0"},
		{"rules", 1, "args[7].value", "false"},
		{"rules", 1, "args[8].value", "id: money"},
		{"rules", 1, "score_expr", "|"},
		{"set_mode_by_score", 1, "mode", `tense: "score`},
		{"set_mode_by_score", 1, "when", `"score >= 40.0"`},
	} {
		t.Run(fmt.Sprintf("%s-%d-%s", c.list, c.i, c.key), func(t *testing.T) {
			places := l.RiskPlaces
			if c.list == "policies" {
				places = l.PolicyPlaces
			}
			e := places.Fault(c.list, c.i, c.key, 0, 0, "", "")
			if e.File != places.src.name || e.Line < 1 || e.Line > len(places.src.lines) {
				t.Fatalf("Fault() = %v", e)
			}
			if got := string([]rune(places.src.lines[e.Line-1])[e.Col-1:]); !strings.HasPrefix(got, c.want) {
				t.Errorf("at %d:%d is %q, want %q", e.Line, e.Col, got, c.want)
			}
		})
	}
}

// TestPlacesWithin: an error in an expression is shown under its character.
func TestPlacesWithin(t *testing.T) {
	l := loadedPolicies(t)
	// risk.mode in ['tense', 'grave'] && 'money' in risk.rules
	e := l.PolicyPlaces.Fault("policies", 1, "when", 1, 36, "no rule is called money", "write its id")
	want := "policies/policy.yaml:11:10: no rule is called money\n" +
		"    11 |       && 'money' in risk.rules\n       |          ^\n       write its id"
	if e.Error() != want || e.Key != "policies[1].when" {
		t.Errorf("Fault = %s, key %s, want %s", e, e.Key, want)
	}
	for _, c := range []struct{ line, column, fileLine, fileCol int }{
		{2, 3, 25, 9}, {1, 1, 24, 7}, {3, 1, 25, 21}, {99, 99, 25, 21}, {0, 0, 23, 17},
	} {
		if e := l.RiskPlaces.Fault("rules", 1, "score_expr", c.line, c.column, "", ""); e.Line != c.fileLine || e.Col != c.fileCol {
			t.Errorf("Fault(score_expr, %d:%d) is at %d:%d, want %d:%d", c.line, c.column, e.Line, e.Col, c.fileLine, c.fileCol)
		}
	}
	none := &Loaded{}
	if e := none.RiskPlaces.Fault("rules", 0, "id", 0, 0, "x", ""); e.Error() != ": x" {
		t.Errorf("Fault without risk rules = %q", e)
	}
}

// spelling is the text of the file at the places of a text's characters.
func spelling(src *source, n *node) (string, bool) {
	at := src.positions(n)
	if at == nil && n.text != "" {
		return "", false
	}
	var b strings.Builder
	for _, p := range at {
		if row := []rune(src.lines[p.line-1]); p.col <= len(row) {
			b.WriteRune(row[p.col-1])
		} else {
			b.WriteByte('\n')
		}
	}
	return b.String(), true
}

func TestPositions(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"plain", "a: x y", "x y"},
		{"plain-behind-others", "é: {é: x y, b: 1}", "x y"},
		{"plain-lines", "a: x\n  y\n\n   z", "x\ny\nz"},
		{"single", "a: 'x''y'", "x'y"},
		{"single-lines", "a: 'x  \n\n\n   y'", "x\n\ny"},
		{"double", `a: "x\"\\\/\x41\u00e9\U0001F600z"`, `x\\\\\\z`},
		{"double-lines", "a: \"x\\\n   y\n z\"", "xy\nz"},
		{"surrogates", `{"a": "\ud83d\ude00z"}`, `\z`},
		{"literal", "a: |\n    x\n      y\n\n    z\nb: 1", "x\n  y\n\nz\n"},
		{"literal-with-indent", "a: |2-\n    x\n  y", "  x\ny"},
		{"literal-behind-blank-lines", "a: |\n\n\n  x", "\n\nx"},
		{"folded", "a: >\n  x\n  y\n\n  z\n    w\n  v\n", "x\ny\nz\n  w\nv\n"},
		{"in-a-list", "- |\n x\n", "x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, text := checkText("c.yaml", []byte(c.yaml))
			root := readYAML(src, text, "")
			if strings.HasPrefix(c.yaml, "{\"") {
				root = readJSON(src, text)
			}
			if root == nil || len(src.faults) > 0 {
				t.Fatal(src.err())
			}
			var first *node
			root.leaves(func(n *node) {
				if first == nil {
					first = n
				}
			})
			if got, ok := spelling(src, first); !ok || got != c.want {
				t.Errorf("write(%q) of %q = %q, %v, want %q", c.yaml, first.text, got, ok, c.want)
			}
		})
	}
	src := newSource("c.yaml", []byte("a: xy"))
	for name, n := range map[string]*node{
		"another-text":    {at: place{1, 4}, text: "xz"},
		"longer-text":     {at: place{1, 4}, text: "xyz"},
		"outside-of-it":   {at: place{2, 1}, text: "x"},
		"behind-the-line": {at: place{1, 6}, text: "x"},
		"nowhere":         {text: "x"},
	} {
		if got := src.positions(n); got != nil {
			t.Errorf("write(%s) = %v, want nil", name, got)
		}
	}
}

// TestEveryTextIsLocated: every text of every file of the tests is found again, character by character.
func TestEveryTextIsLocated(t *testing.T) {
	texts := 0
	names, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if ext := filepath.Ext(f.Name); ext != ".yaml" && ext != ".json" {
				continue
			}
			src, text := checkText(f.Name, f.Data)
			if text == nil {
				continue
			}
			root := readEither(src, text, "")
			if root == nil || len(src.faults) > 0 {
				continue
			}
			root.leaves(func(n *node) {
				if n.kind != isText {
					return
				}
				texts++
				checkPositionsing(t, name, src, n)
			})
		}
	}
	if texts < 1000 {
		t.Errorf("%d texts, want at least 1000", texts)
	}
}

// checkPositionsing holds what was found to the text: the same characters, but for white space and escapes.
func checkPositionsing(t *testing.T, name string, src *source, n *node) {
	t.Helper()
	got, ok := spelling(src, n)
	if !ok {
		t.Errorf("%s:%d:%d: %q is not found", name, n.at.line, n.at.col, n.text)
		return
	}
	want := []rune(n.text)
	for i, r := range []rune(got) {
		if r != want[i] && r != '\\' && !(unicode.IsSpace(r) && unicode.IsSpace(want[i])) {
			t.Errorf("%s:%d:%d: %q is found as %q", name, n.at.line, n.at.col, n.text, got)
			return
		}
	}
}

// TestFaultsInTheSamePlace: a value that is refused by its type is refused once, and the rest of its file is judged.
func TestFaultsInTheSamePlace(t *testing.T) {
	_, _, err := ReadPolicy("p.yaml", []byte(`version: 1
policies:
  - {id: 1, effect: 2, when: 3, deny: 4, approvers: [5, ""], quorum: "6", expires: 7, mode: 8, match: {tool: 9}}
  - {id: b, effect: deny, when: envv == "x"}
`))
	all, _ := err.(Errors)
	var got []string
	for _, e := range all {
		got = append(got, e.Key)
	}
	want := []string{"policies[0].id", "policies[0].effect", "policies[0].when", "policies[0].deny",
		"policies[0].approvers[0]", "policies[0].approvers[1]", "policies[0].quorum", "policies[0].expires",
		"policies[0].mode", "policies[0].match.tool", "policies[1].when"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s\n%v", diff, err)
	}
	if !slices.IsSortedFunc(all, func(a, b *Error) int { return a.Line - b.Line }) {
		t.Error("the faults are not in the order of the file")
	}
}
