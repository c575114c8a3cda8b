package mcp

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// waysToCall finds what a file could call a tool with, other than this package: the SDK's CallTool and its params, and
// the method's name as a text, whole, put together, or inside JSON.
func waysToCall(fset *token.FileSet, file *ast.File) []string {
	usesSDK := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		path, err := strconv.Unquote(i.Path.Value)
		return err != nil || strings.HasPrefix(path, "github.com/modelcontextprotocol/go-sdk")
	})
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if usesSDK && (n.Name == "CallTool" || n.Name == "CallToolParams") {
				found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), n.Name))
			}
		case ast.Expr:
			if s, ok := literal(n); ok && (s == methodCall || strings.Contains(s, strconv.Quote(methodCall))) {
				found = append(found, fmt.Sprintf("%s: %q", fset.Position(n.Pos()), s))
				return false
			}
		}
		return true
	})
	return found
}

// literal is the value of a string literal or a sum of them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
		}
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		left, ok1 := literal(e.X)
		right, ok2 := literal(e.Y)
		return left + right, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

func TestThereIsOneWayToCall(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the module's root is not where this test looks: %v", err)
	}
	files, here := 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found := waysToCall(fset, file)
		if filepath.Dir(path) == filepath.Join(root, "mcp") {
			here += len(found)
			return nil
		}
		files++
		for _, f := range found {
			t.Errorf("%s: a way to call a tool outside package mcp", f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 || here < 2 {
		t.Errorf("%d files scanned, %d ways found in this package, want some and at least 2: the scan is blind", files, here)
	}
}

func TestTheScanSeesEveryWay(t *testing.T) {
	const sdkImport = `import mcp "github.com/modelcontextprotocol/go-sdk/mcp"; `
	tests := []struct {
		name, source string
		ways         int
	}{
		{"call", sdkImport + `func f(s *mcp.ClientSession) { s.CallTool(nil, nil) }`, 1},
		{"method-value", sdkImport + `var f = (*mcp.ClientSession).CallTool`, 1},
		{"params", sdkImport + `var p mcp.CallToolParams`, 1},
		{"own-interface", sdkImport + `type i interface{ CallTool() }`, 1},
		{"literal", `const m = "tools/call"`, 1},
		{"raw-literal", "const m = `tools/call`", 1},
		{"escaped-literal", `const m = "tools\x2fcall"`, 1},
		{"sum", `const m = "tools" + ("/" + "call")`, 1},
		{"inside-json", "const m = `{\"method\":\"tools/call\"}`", 1},
		{"a-command-of-that-name-elsewhere", `type CallTool struct{}`, 0},
		{"server-side-type", sdkImport + `var r mcp.CallToolResult`, 0},
		{"in-a-sentence", `const why = "at most one tools/call is made"`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "x.go", "package x; "+tt.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if found := waysToCall(fset, file); len(found) != tt.ways {
				t.Errorf("waysToCall(%s) = %v, want %d", tt.source, found, tt.ways)
			}
		})
	}
}
