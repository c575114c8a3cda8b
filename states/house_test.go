package states_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The house rules that a machine can check. CONTRIBUTING.md says why they are there.
const (
	maxFileLines     = 600
	maxFunctionLines = 80
	maxColumns       = 160 // what gofmt leaves; we aim at 120
)

// pure are the packages that call no clock, no randomness, no network, no process and no file system.
var pure = []string{"fsm", "states", "policy", "policy/canonical", "policy/evidence", "policy/schema", "policy/screen",
	"policy/settings", "policy/visible"}

// impure are the imports that would give them one.
var impure = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "os", "os/exec", "os/signal",
	"syscall", "io/ioutil", "log", "log/slog", "testing", "unsafe"}

// neighbours are the packages of this module that each part may import, by prefix. What is not named may import all.
var neighbours = map[string][]string{
	"fsm":     {},
	"policy":  {"policy"},
	"config":  {},
	"states":  {"fsm", "policy"},
	"llm":     {"policy"},
	"mcp/toy": {"config", "policy/canonical"},
	"mcp":     {"policy"},
	"traces":  {"fsm", "policy", "states"},
}

// goFiles calls do for every hand-written Go file of the module, with its path from the module's folder.
func goFiles(t *testing.T, do func(path string)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && e.Name() != "..") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			n++
			do(filepath.ToSlash(strings.TrimPrefix(path, "../")))
		}
		return nil
	})
	if err != nil || n < 100 {
		t.Fatalf("only %d Go files were looked at: %v", n, err)
	}
}

func TestHouseFilesAndFunctionsAreSmall(t *testing.T) {
	goFiles(t, func(path string) {
		f, err := os.Open(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			lines++
			if n := len([]rune(s.Text())); n > maxColumns && !strings.Contains(s.Text(), `"`) && !strings.Contains(s.Text(), "`") {
				t.Errorf("%s:%d has %d columns, more than %d", path, lines, n, maxColumns)
			}
		}
		if lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: one concept a file", path, lines, maxFileLines)
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, filepath.Join("..", path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || strings.HasSuffix(path, "_test.go") || path == "states/table.go" {
				continue // the table is one literal: the specification, read from top to bottom
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxFunctionLines)
			}
		}
	})
}

func TestHouseImports(t *testing.T) {
	goFiles(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(pure, dir) && slices.Contains(impure, name) {
				t.Errorf("%s imports %s: %s calls no clock, randomness, network, process or file system", path, name, dir)
			}
			if ours, ok := strings.CutPrefix(name, "pgfsm/"); ok && !mayImport(dir, ours) {
				t.Errorf("%s imports %s, which %s must not know", path, name, dir)
			}
		}
	})
}

// mayImport looks up the longest part of the house that dir belongs to.
func mayImport(dir, ours string) bool {
	for part := dir; part != "."; part = filepath.ToSlash(filepath.Dir(part)) {
		if allowed, ok := neighbours[part]; ok {
			return slices.ContainsFunc(append(allowed, part), func(p string) bool {
				return ours == p || strings.HasPrefix(ours, p+"/")
			})
		}
	}
	return true
}

// TestHouseOrderIsPartOfTheOutput finds go statements in pure packages, and loops over maps that do not say why their
// order does not matter.
func TestHouseOrderIsPartOfTheOutput(t *testing.T) {
	var patterns []string
	for _, dir := range append(slices.Clone(pure), "traces", "llm") {
		patterns = append(patterns, "pgfsm/"+dir)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedDeps | packages.NeedExportFile,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	loops := 0
	for _, pkg := range loaded {
		for _, e := range pkg.Errors {
			t.Fatalf("%s: %v", pkg.PkgPath, e)
		}
		for _, tree := range pkg.Syntax {
			said := map[int]bool{}
			for _, group := range tree.Comments {
				for _, c := range group.List {
					if strings.Contains(c.Text, "order") || strings.Contains(c.Text, "sorted") {
						said[pkg.Fset.Position(c.Pos()).Line] = true
					}
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.RangeStmt:
					loops++
					at := pkg.Fset.Position(n.Pos())
					if _, isMap := pkg.TypesInfo.TypeOf(n.X).Underlying().(*types.Map); isMap && !said[at.Line] && !said[at.Line-1] {
						t.Errorf("%s ranges over a map: say in a comment why the order does not matter, or sort", at)
					}
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine", pkg.Fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if loops < 50 {
		t.Fatalf("only %d loops were looked at", loops)
	}
}

// TestHouseChecksCanFail shows each rule red.
func TestHouseChecksCanFail(t *testing.T) {
	for _, tc := range []struct {
		dir, ours string
		want      bool
	}{
		{"fsm", "policy", false}, {"policy/screen", "fsm", false}, {"policy/schema", "policy/canonical", true},
		{"states", "policy/canonical", true}, {"states", "mcp", false}, {"states/statestest", "states", true},
		{"mcp", "llm", false}, {"mcp/toy", "config", true}, {"mcp/toy", "states", false}, {"llm", "traces", false},
		{"traces", "states", true}, {"traces", "mcp", false}, {"cmd/pgfsm", "traces", true},
	} {
		if got := mayImport(tc.dir, tc.ours); got != tc.want {
			t.Errorf("mayImport(%s, %s) = %v, want %v", tc.dir, tc.ours, got, tc.want)
		}
	}
}
