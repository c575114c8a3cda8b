package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/cli"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// testNames are the tests of this folder, of the runner and of the gateway, by function, with all strings in each: the names of subtests are
// among them.
func testNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := make(map[string]map[string]bool)
	var sources []string
	for _, folder := range []string{".", "../internal/runner", "../mcp/gateway", "../mcp/upstream"} {
		found, err := filepath.Glob(folder + "/*_test.go")
		check.NoError(t, err)
		sources = append(sources, found...)
	}
	for _, source := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		check.NoError(t, err)
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

var failureRow = regexp.MustCompile(`(?m)^\| (?:[^|]* \| ){3}.*\|$`)

// unshown are the rows of the failure tables that name no test in a comment, or one that does not exist.
func unshown(page string, names map[string]map[string]bool) (rows int, wrong []string) {
	for _, row := range failureRow.FindAllString(page, -1) {
		if strings.HasPrefix(row, "| situation |") || strings.HasPrefix(row, "| ---") {
			continue
		}
		rows++
		_, comment, _ := strings.Cut(row, "<!-- ")
		comment, _, _ = strings.Cut(comment, " -->")
		for name := range strings.SplitSeq(comment, ", ") {
			if pkg, test, found := strings.Cut(name, "."); found && !strings.Contains(pkg, "/") {
				name = test
			}
			test, sub, _ := strings.Cut(name, "/")
			said, known := names[test]
			for part := range strings.SplitSeq(sub, "/") {
				known = known && (part == "" || said[part] || composed(part, said))
			}
			if !known {
				wrong = append(wrong, row)
			}
		}
	}
	return rows, wrong
}

// composed reports whether a name is put together of two.
func composed(name string, said map[string]bool) bool {
	for i := range name {
		if said[name[:i]] && said[name[i:]] {
			return true
		}
	}
	return false
}

// TestServeFailureMatrix: every row of the failure tables names the test that shows it, and that test exists.
func TestServeFailureMatrix(t *testing.T) {
	names := testNames(t)
	rows, wrong := unshown(cli.Read(t, "../docs/operate/failures.md"), names)
	if rows < 30 || len(wrong) > 0 {
		t.Errorf("%d rows; without their test are %q", rows, wrong)
	}
}
