package states_test

import (
	"fmt"
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
	"unicode/utf8"

	"golang.org/x/tools/go/packages"

	"pgfsm/internal/test/check"
)

// The house rules that a machine can check. CONTRIBUTING.md says why they are there.
const (
	maxFileLines     = 600
	maxFunctionLines = 80
	maxColumns       = 160 // what gofmt leaves; we aim at 120
)

// pure are the packages that call no clock, no randomness, no network, no process and no file system.
var pure = []string{"fsm", "states", "policy", "policy/condition", "policy/draft", "policy/evidence", "policy/lint", "policy/origin", "policy/prove", "policy/risk", "policy/rules", "policy/ruling",
	"policy/schema", "policy/screen", "internal/canonical", "internal/config", "internal/docdiff", "internal/glob", "internal/secret", "internal/visible"}

// impure are the imports that would give them one.
var impure = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "os", "os/exec", "os/signal",
	"syscall", "io/ioutil", "log", "log/slog", "testing", "unsafe"}

// plain are the packages without a concept of this project: text, JSON, patterns. They may import each other, and what may import
// policy may import them.
var plain = []string{"internal/canonical", "internal/docdiff", "internal/glob", "internal/secret", "internal/visible"}

// neighbours are the packages of this module that each part may import, by prefix. What is not named may import all.
var neighbours = map[string][]string{
	"fsm":                   {},
	"fsm/fsmtest":           {"fsm"},
	"states":                {"fsm", "policy"},
	"policy":                {"policy"},
	"llm":                   {"internal/web/loopback", "policy"},
	"mcp":                   {"internal/current", "internal/deadline", "internal/oauth", "internal/web", "mcp", "policy"},
	"mcp/demo":              {"internal/canonical", "internal/config"},
	"traces":                {"fsm", "internal/deadline", "internal/identity", "internal/present", "internal/safefile", "internal/test", "internal/web", "policy", "states"},
	"traces/backtest":       {"internal/config", "policy", "states", "traces"},
	"eval":                  {"fsm", "internal/config", "internal/runner", "internal/safefile", "internal/web/loopback", "llm", "mcp", "policy", "states", "traces"},
	"internal/canonical":    {},
	"internal/docdiff":      {},
	"internal/glob":         {},
	"internal/secret":       {},
	"internal/visible":      {},
	"internal/cli":          {"internal/visible"},
	"internal/clientfile":   {"internal/safefile", "mcp/wire", "policy"},
	"internal/config":       {"policy", "traces/ledger/postgres/pgurl"},
	"internal/config/pins":  {"internal/config", "internal/safefile", "policy"},
	"internal/current":      {},
	"internal/deadline":     {},
	"internal/oauth":        {"internal/secret"},
	"internal/hook":         {"internal/visible", "internal/web/loopback"},
	"internal/hookcheck":    {},
	"internal/identity":     {"internal/oauth", "internal/web", "policy"},
	"internal/runner":       {"internal/config", "internal/current", "internal/deadline", "internal/hook", "internal/identity", "internal/oauth", "internal/present", "internal/safefile", "internal/telemetry", "internal/web", "llm", "mcp", "policy", "states", "traces"},
	"internal/safefile":     {},
	"internal/telemetry":    {},
	"internal/web":          {"internal/safefile", "policy"},
	"internal/web/loopback": {},
}

// goFiles calls do for every hand-written Go file of the module, with its path from the module's folder.
func goFiles(t *testing.T, do func(path string, file *ast.File)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && e.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		n++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			do(filepath.ToSlash(strings.TrimPrefix(path, "../")), file)
		}
		return err
	})
	if err != nil || n < 100 {
		t.Fatalf("only %d Go files were looked at: %v", n, err)
	}
}

func TestHouseFilesAndFunctionsAreSmall(t *testing.T) {
	goFiles(t, func(path string, _ *ast.File) {
		src, err := os.ReadFile(filepath.Join("..", path))
		check.NoError(t, err)
		for _, fault := range tooLarge(t, path, string(src)) {
			t.Error(fault)
		}
	})
}

// tooLarge names what is too large in a file.
func tooLarge(t *testing.T, path, src string) (faults []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(src, "\n"), "\n")
	if len(lines) > maxFileLines {
		faults = append(faults, fmt.Sprintf("%s has %d lines, more than %d: one concept a file", path, len(lines), maxFileLines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns && !strings.ContainsAny(line, "\"`") { // texts and tables of cases may be long
			faults = append(faults, fmt.Sprintf("%s:%d has %d columns, more than %d", path, i+1, n, maxColumns))
		}
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, src, 0)
	check.NoError(t, err)
	for _, fn := range functions(tree) {
		if strings.HasSuffix(path, "_test.go") || path == "states/table.go" || path == "policy/codes.go" {
			continue // the tables of the machine and of the codes are one literal each, read from top to bottom
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
			faults = append(faults, fmt.Sprintf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxFunctionLines))
		}
	}
	return faults
}

func TestHouseImports(t *testing.T) {
	goFiles(t, func(path string, tree *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, spec := range tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			check.NoError(t, err)
			if why := forbidden(path, name); why != "" {
				t.Errorf("%s imports %s: %s", path, name, why)
			}
		}
	})
}

// forbidden says why a file must not import a package, or nothing.
func forbidden(path, name string) string {
	dir := filepath.ToSlash(filepath.Dir(path))
	ours, isOurs := strings.CutPrefix(name, "pgfsm/")
	switch {
	case slices.Contains(pure, dir) && slices.Contains(impure, name):
		return dir + " calls no clock, randomness, network, process or file system"
	case isOurs && !mayImport(dir, ours):
		return dir + " must not know it"
	case ours == "eval/naive" && dir != "eval/endtoend",
		ours == "eval/endtoend" && dir != "eval/report" && dir != "cmd/pgfsm-eval":
		return "only the end-to-end evaluation reaches the agent without gates"
	case (ours == "eval" || strings.HasPrefix(ours, "eval/")) && !strings.HasPrefix(dir, "eval") && dir != "cmd/pgfsm-eval":
		return "only pgfsm-eval holds evaluations"
	case ours == "fsm/fsmtest" && dir == "eval/gates":
		return "" // it measures the compiler of tables with the same mutants as the tests
	case strings.HasSuffix(dir, "test") && dir != "traces/backtest", strings.HasPrefix(dir, "internal/test/"):
		return "" // it is for tests itself
	case ours == "states/statestest", ours == "traces/tracestest", ours == "traces/ledger/ledgertest", ours == "fsm/fsmtest", ours == "internal/test/golden", ours == "internal/identity/identitytest",
		ours == "internal/test/browser", ours == "internal/test/check", ours == "internal/test/clitest", ours == "internal/test/mcptest", ours == "internal/telemetry/otlptest":
		return "it is for tests"
	}
	return ""
}

// mayImport looks up the longest part of the house that dir belongs to.
func mayImport(dir, ours string) bool {
	for part := dir; part != "."; part = filepath.ToSlash(filepath.Dir(part)) {
		if allowed, ok := neighbours[part]; ok {
			if slices.Contains(allowed, "policy") || part == "policy" || slices.Contains(plain, part) {
				allowed = slices.Concat(allowed, plain)
			}
			return slices.ContainsFunc(append(allowed, part), func(p string) bool {
				return ours == p || strings.HasPrefix(ours, p+"/")
			})
		}
	}
	return true
}

// TestHouseFuzzTargetsHaveSeeds: a target without seeds would go on passing and look at nothing.
func TestHouseFuzzTargetsHaveSeeds(t *testing.T) {
	targets := 0
	goFiles(t, func(path string, file *ast.File) {
		for _, fn := range functions(file) {
			if name := fn.Name.Name; strings.HasSuffix(path, "_test.go") && strings.HasPrefix(name, "Fuzz") {
				targets++
				if stored, _ := os.ReadDir(filepath.Join("..", filepath.Dir(path), "testdata", "fuzz", name)); len(stored) == 0 && !addsSeeds(fn) {
					t.Errorf("%s: %s has no seeds, neither stored nor added", path, name)
				}
			}
		}
	})
	if targets < 20 {
		t.Errorf("only %d fuzz targets were found", targets)
	}
}

// addsSeeds reports whether a fuzz target calls f.Add.
func addsSeeds(fn *ast.FuncDecl) (adds bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		adds = adds || ok && call.Sel.Name == "Add"
		return true
	})
	return adds
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
			packages.NeedImports | packages.NeedExportFile,
	}, patterns...)
	check.NoError(t, err)
	loops := 0
	for _, pkg := range loaded {
		for _, e := range pkg.Errors {
			t.Fatalf("%s: %v", pkg.PkgPath, e)
		}
		for _, tree := range pkg.Syntax {
			faults, n := disorder(pkg.Fset, tree, pkg.TypesInfo)
			loops += n
			for _, fault := range faults {
				t.Error(fault)
			}
		}
	}
	if loops < 50 {
		t.Fatalf("only %d loops were looked at", loops)
	}
}

// disorder names goroutines, and loops over maps that do not say why their order does not matter. It counts all loops.
func disorder(fset *token.FileSet, tree *ast.File, info *types.Info) (faults []string, loops int) {
	said := map[int]bool{}
	for _, group := range tree.Comments {
		for _, c := range group.List {
			if strings.Contains(c.Text, "order") || strings.Contains(c.Text, "sorted") {
				said[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			loops++
			at := fset.Position(n.Pos())
			if _, isMap := info.TypeOf(n.X).Underlying().(*types.Map); isMap && !said[at.Line] && !said[at.Line-1] {
				faults = append(faults, fmt.Sprintf("%s ranges over a map: say in a comment why the order does not matter, or sort", at))
			}
		case *ast.GoStmt:
			faults = append(faults, fmt.Sprintf("%s starts a goroutine", fset.Position(n.Pos())))
		}
		return true
	})
	return faults, loops
}
