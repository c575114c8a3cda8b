package upstream

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

	"pgfsm/internal/test/check"
)

// waysToCall finds what a file could call a tool with, other than this package: the SDK's CallTool and its params, and
// the method's name as a text, whole, put together, or inside JSON. Who serves such requests may name the method: what a
// link is asked to send under that name it refuses.
func waysToCall(fset *token.FileSet, file *ast.File, serves bool) []string {
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
			if s, ok := literal(n); ok && (s == methodCall && !serves || strings.Contains(s, strconv.Quote(methodCall))) {
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
	root, err := filepath.Abs("../..")
	check.NoError(t, err)
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
		gateway := filepath.Join(root, "mcp", "gateway")
		found := waysToCall(fset, file, path == gateway || strings.HasPrefix(path, gateway+string(filepath.Separator)))
		if filepath.Dir(path) == filepath.Join(root, "mcp", "upstream") {
			here += len(found)
			return nil
		}
		switch filepath.Dir(path) {
		case filepath.Join(root, "eval", "naive"), // the agent without gates that pgfsm is measured against; its own test holds who may import it
			filepath.Join(root, "internal", "test", "mcptest"): // the scripted server, which tests alone import
			return nil
		}
		files++
		for _, f := range found {
			t.Errorf("%s: a way to call a tool outside package mcp", f)
		}
		return nil
	})
	check.NoError(t, err)
	if files == 0 || here < 1 {
		t.Errorf("%d files scanned, %d ways found in this package, want some: the scan is blind", files, here)
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
			check.NoError(t, err)
			if found := waysToCall(fset, file, false); len(found) != tt.ways {
				t.Errorf("waysToCall(%s) = %v, want %d", tt.source, found, tt.ways)
			}
			named := 0
			if strings.HasSuffix(tt.name, "literal") || tt.name == "sum" {
				named = tt.ways
			}
			if found := waysToCall(fset, file, true); len(found) != tt.ways-named {
				t.Errorf("waysToCall(%s) of a server = %v, want %d", tt.source, found, tt.ways-named)
			}
		})
	}
}

// onlyIn says which functions of this package may use what a call, or any byte, leaves the process by.
var onlyIn = map[string][]string{
	"newPermit":     {"Link.Call"}, // makes a permit that calls
	"permit{}":      {"newPermit"},
	"message":       {"Link.encodeCall"}, // encodes a call
	"encodeCall":    {"Link.Call"},
	"consume":       {"Link.authorizeSend"},
	"authorizeSend": {"httpConn.exchange", "stdioConn.sendFrame"},
	"send":          {"duplex.roundTrip", "duplex.sendMessage", "Link.openPipe", "Link.openSSE"}, // passes a permit, or leads to who does
	"exchange": {"httpConn.roundTrip", "httpConn.sendMessage", "sseConn.postFrame", "httpConn.readStandaloneStream",
		"httpConn.close", "httpConn.resumeStream", "Link.openSSE"},
	"RoundTrip":  {"transport.RoundTrip", "httpConn.exchange"},
	"newBody":    {"newRequest"},
	"sendFrame":  {"Link.openPipe"},
	"writeFrame": {"stdioConn.sendFrame"}, // writes to a child
}

// uses finds the functions that use something in onlyIn and are not named there.
func uses(file *ast.File) (found []string, seen int) {
	for _, decl := range file.Decls {
		where := ""
		if fn, ok := decl.(*ast.FuncDecl); ok {
			where = fn.Name.Name
			if fn.Recv != nil {
				typ := fn.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				where = fmt.Sprintf("%s.%s", typ, where)
			}
		}
		use := func(name string) {
			allowed, guarded := onlyIn[name]
			if !guarded {
				return
			}
			seen++
			if !slices.Contains(allowed, where) {
				found = append(found, fmt.Sprintf("%s uses %s", where, name))
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // a call, or a method value
				use(n.Sel.Name)
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok {
					use(id.Name)
				}
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "new" && len(n.Args) == 1 && fmt.Sprint(n.Args[0]) == "permit" {
					use("permit{}")
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "permit" {
					use("permit{}")
				}
			}
			return true
		})
	}
	return found, seen
}

func TestThisPackageHasOneWayToo(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	check.NoError(t, err)
	total := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		check.NoError(t, err)
		found, seen := uses(file)
		total += seen
		for _, f := range found {
			t.Errorf("%s: %s, which only %v may", path, f, onlyIn[f[strings.LastIndexByte(f, ' ')+1:]])
		}
	}
	if total < 20 {
		t.Errorf("%d uses were found, want at least 20: the scan is blind", total)
	}
}

func TestTheScanOfThisPackageSeesEveryUse(t *testing.T) {
	for _, source := range []string{
		`func (l *Link) Request() { newPermit(nil, 0) }`,
		`func (l *Link) Request() { l.encodeCall(Call{}) }`,
		`var p = &permit{}`,
		`var p = new(permit)`,
		`func f(c *Call) { c.message(1, nil) }`,
		`var f = (*Call).message`,
		`func (l *Link) Notify() { l.authorizeSend(nil, nil) }`,
		`func (h *httpConn) settle() { h.transport.RoundTrip(nil) }`,
		`func (t *transport) close() { t.RoundTrip(nil) }`,
		`func (l *Link) Answer() { newBody(nil, nil) }`,
		`func (c *stdioConn) close() { c.child.writeFrame(nil, nil) }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package mcp; "+source, parser.SkipObjectResolution)
		check.NoError(t, err)
		if found, _ := uses(file); len(found) != 1 {
			t.Errorf("uses(%s) = %v, want one", source, found)
		}
	}
}
