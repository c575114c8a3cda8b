package config

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"pgfsm/internal/test/check"
)

func loadedPolicies(t *testing.T) *Loaded {
	t.Helper()
	a, err := txtar.ParseFile("testdata/good/policy.txtar")
	check.NoError(t, err)
	l, err := Load("pgfsm.yaml", archive(a), Overrides{})
	check.NoError(t, err)
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
			if e.File != places.file.name || e.Line < 1 || e.Line > len(places.file.lines) {
				t.Fatalf("Fault() = %v", e)
			}
			if got := string([]rune(places.file.lines[e.Line-1])[e.Col-1:]); !strings.HasPrefix(got, c.want) {
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

// TestPlacesInTexts: every character of a text without escapes is found in the file, in whichever way YAML writes the text.
func TestPlacesInTexts(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		line, col  int    // in the text
		want       string // what is there in the file
	}{
		{"plain", "a: xy z", 1, 4, "z"},
		{"plain-in-a-flow", "é: {é: x y, b: 1}", 1, 3, "y,"},
		{"plain-on-three-lines", "a: x\n  y\n\n   z", 2, 1, "z"},
		{"single-quotes", "a: 'x''y'", 1, 3, "y'"},
		{"single-quotes-on-lines", "a: 'x  \n\n\n   y'", 3, 1, "y'"},
		{"double-quotes", `a: "x\"\\z"`, 1, 4, `z"`},
		{"another-escape", `a: "\u00e9z"`, 1, 2, `"\u00e9`},
		{"literal", "a: |\n    x\n      y\n\n    z\nb: 1", 2, 3, "y"},
		{"literal-with-an-indent", "a: |2-\n    x\n  y", 2, 1, "y"},
		{"folded", "a: >\n  x\n  y\n\n  z\n    w\n  v\n", 3, 3, "w"},
		{"after-the-end", "a: xy", 1, 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, text := openFile("c.yaml", []byte(c.yaml), MaxFileBytes)
			root := f.readYAML(text, "")
			if root == nil || len(f.faults) > 0 {
				t.Fatal(f.err())
			}
			at := f.locateCharacter(root.members[0].value, c.line, c.col)
			if root.members[0].value.kind == isMap {
				at = f.locateCharacter(root.members[0].value.members[0].value, c.line, c.col)
			}
			if got := string([]rune(f.lines[at.line-1])[at.col-1:]); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("locate(%q, %d:%d) is %d:%d, at %q, want %q", c.yaml, c.line, c.col, at.line, at.col, got, c.want)
			}
		})
	}
}
