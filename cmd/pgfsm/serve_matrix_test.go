package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// testNames are the tests of this folder, by function, with all strings in each: the names of subtests are among them.
func testNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := make(map[string]map[string]bool)
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]bool) // a table may stand beside the test
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					all[text] = true
				}
			}
			return true
		})
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				names[fn.Name.Name] = all
			}
		}
	}
	return names
}

// unshown are the rows of the failure matrix that name no test, or one that is not there.
func unshown(page string, names map[string]map[string]bool) (rows int, wrong []string) {
	_, table, _ := strings.Cut(page, "\n## When something is down\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 || strings.HasPrefix(cells[0], "**") || strings.HasPrefix(cells[0], "---") || cells[4] == "test" {
			continue
		}
		rows++
		test, sub, _ := strings.Cut(strings.Trim(cells[4], "`"), "/")
		said, known := names[test]
		found := sub == "" || said[sub]
		for i := range sub { // a name may be put together of two
			found = found || said[sub[:i]] && said[sub[i:]]
		}
		if !known || !found {
			wrong = append(wrong, cells[0]+": "+cells[4])
		}
	}
	return rows, wrong
}

// TestServeFailureMatrix: every row of the failure matrix names the test that shows it, and that test is there.
func TestServeFailureMatrix(t *testing.T) {
	names := testNames(t)
	rows, wrong := unshown(textOf(t, "../../docs/guide/gateway.md"), names)
	if rows < 35 || len(wrong) > 0 {
		t.Errorf("%d rows; without their test are %q", rows, wrong)
	}
	for _, tt := range []struct{ name, test string }{
		{"no-test", ""},
		{"a-test-that-is-not-there", "TestNobodyWroteThis/it"},
		{"a-row-that-is-not-there", "TestServeFailureMatrix/" + strings.Repeat("nowhere ", 3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page := "\n## When something is down\n| a | b | c | d | `" + tt.test + "` |\n"
			if rows, wrong := unshown(page, names); rows != 1 || len(wrong) != 1 {
				t.Errorf("the check is blind: %d rows, %q", rows, wrong)
			}
		})
	}
}
