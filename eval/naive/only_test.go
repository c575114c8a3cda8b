package naive_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The package itself, the one that may import it, the function by which that one uses it, and where the command does.
const (
	itself   = "pgfsm/eval/naive"
	user     = "pgfsm/eval/endtoend"
	function = "Naive"
	command  = "cmd/pgfsm/evale2e"
)

// strays names what a file does to reach the agent without gates and may not, and counts what it may.
func strays(path string, file *ast.File) (found []string, fine int) {
	note := func(may bool, what string) {
		if may {
			fine++
		} else {
			found = append(found, path+" "+what)
		}
	}
	called := "" // what the file calls the package that uses it
	for _, i := range file.Imports {
		switch name, _ := strconv.Unquote(i.Path.Value); name {
		case itself:
			note(strings.HasPrefix(path, "eval/endtoend/") || strings.HasPrefix(path, "eval/naive/"), "imports "+itself)
		case user:
			if called = "endtoend"; i.Name != nil {
				called = i.Name.Name
			}
			note(called != "." && called != "_", "imports "+user+" under the name "+called)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && called != "" && s.Sel.Name == function {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == called {
				note(strings.HasPrefix(path, command), "uses "+user+"."+function)
			}
		}
		return true
	})
	return found, fine
}

func TestOnlyTheEndToEndEvaluationCanReachIt(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the module's root is not where this test looks: %v", err)
	}
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		from, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, fine := strays(filepath.ToSlash(from), file)
		seen += fine
		for _, f := range found {
			t.Error(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 3 {
		t.Errorf("%d ways were found, want at least 3: the scan is blind", seen)
	}
}

func TestTheScanSeesStrays(t *testing.T) {
	const (
		direct = `import "pgfsm/eval/naive"`
		named  = `import n "pgfsm/eval/naive"`
		uses   = `import "pgfsm/eval/endtoend"; var f = endtoend.Naive`
	)
	for _, tt := range []struct {
		name, path, source string
		strays             int
	}{
		{"the-gateway", "mcp/gateway/serve.go", direct, 1},
		{"the-command", "cmd/pgfsm/run.go", direct, 1},
		{"under-another-name", "cmd/pgfsm/run.go", named, 1},
		{"the-command-of-the-evaluation-directly", "cmd/pgfsm/evale2e.go", direct, 1},
		{"a-neighbour", "eval/attack/naive.go", direct, 1},
		{"the-evaluation", "eval/endtoend/side.go", direct, 0},
		{"the-command-of-the-evaluation", "cmd/pgfsm/evale2erun.go", uses, 0},
		{"another-command", "cmd/pgfsm/serve.go", uses, 1},
		{"another-command-under-another-name", "cmd/pgfsm/run.go", `import e "pgfsm/eval/endtoend"; var f = e.Naive`, 1},
		{"another-command-without-a-name", "cmd/pgfsm/run.go", `import . "pgfsm/eval/endtoend"; var f = Naive`, 1},
		{"a-reader-of-results", "eval/report/page.go", `import "pgfsm/eval/endtoend"; var m endtoend.Metrics; var n = m.Naive`, 0},
		{"something-else", "cmd/pgfsm/run.go", `import "pgfsm/states"; var f = states.Naive`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+tt.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if found, _ := strays(tt.path, file); len(found) != tt.strays {
				t.Errorf("strays(%s, %s) = %v, want %d", tt.path, tt.source, found, tt.strays)
			}
		})
	}
}
