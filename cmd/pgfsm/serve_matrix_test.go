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

// missing are the tests that rows of the failure matrix name and that are not there, and the rows that name none.
func missing(page string, names map[string]map[string]bool) (rows int, wrong []string) {
	_, table, _ := strings.Cut(page, "\n## When something is down\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(strings.TrimSpace(cells[0]), "**") || strings.Contains(cells[0], "---") || strings.TrimSpace(cells[4]) == "test" {
			continue
		}
		rows++
		test, sub, _ := strings.Cut(strings.Trim(strings.TrimSpace(cells[4]), "`"), "/")
		strs, known := names[test]
		prefixed := false
		for _, verb := range []string{"approved", "denied"} {
			prefix, ok := strings.CutSuffix(sub, verb)
			prefixed = prefixed || ok && prefix != "" && strs[prefix] && strs[verb]
		}
		if !known || sub != "" && !strs[sub] && !prefixed {
			wrong = append(wrong, strings.TrimSpace(cells[0])+": "+cells[4])
		}
	}
	return rows, wrong
}

// TestServeFailureMatrix: every row of the failure matrix names the test that shows it, and that test is there.
func TestServeFailureMatrix(t *testing.T) {
	rows, wrong := missing(textOf(t, "../../docs/gateway.md"), testNames(t))
	if rows < 35 || len(wrong) > 0 {
		t.Errorf("%d rows; without their test are %q", rows, wrong)
	}
	const page = "\n## When something is down\n| a | b | c | d | `TestNobodyWroteThis/it` |\n| a | b | c | d | |\n| a | b | c | d | `TestServeFailureMatrix/no-such-row` |\n"
	if rows, wrong := missing(page[:len(page)-len("no-such-row` |\n")]+"`|\n", testNames(t)); rows != 3 || len(wrong) != 2 {
		t.Errorf("the check is blind: %d rows, %q", rows, wrong)
	}
}
