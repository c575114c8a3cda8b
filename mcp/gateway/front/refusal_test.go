package front

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gatewayPage has the table of refusals.
const gatewayPage = "../../../docs/reference/gateway-protocol.md"

// statuses are those that the front refuses something with, by the names that net/http has for them.
var statuses = map[string]int{
	"StatusBadRequest": http.StatusBadRequest, "StatusUnauthorized": http.StatusUnauthorized, "StatusForbidden": http.StatusForbidden,
	"StatusNotFound": http.StatusNotFound, "StatusMethodNotAllowed": http.StatusMethodNotAllowed,
	"StatusNotAcceptable": http.StatusNotAcceptable, "StatusRequestTimeout": http.StatusRequestTimeout, "StatusConflict": http.StatusConflict,
	"StatusRequestEntityTooLarge": http.StatusRequestEntityTooLarge, "StatusUnsupportedMediaType": http.StatusUnsupportedMediaType,
	"StatusTooManyRequests": http.StatusTooManyRequests, "StatusServiceUnavailable": http.StatusServiceUnavailable,
}

// refusals reads the sources for the codes of refusals and the status that each goes with, as the rows of a table begin: sorted.
func refusals(t *testing.T, sources ...string) []string {
	t.Helper()
	codes := make(map[string]string) // by the name of the constant
	rows := make(map[string]bool)
	var used []func()
	for _, source := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		row := func(status, reason ast.Expr) {
			name, isName := reason.(*ast.Ident)
			selected, isStatus := status.(*ast.SelectorExpr)
			if !isName || !isStatus { // the parameters of a function, or a pipe, which has no status
				return
			}
			used = append(used, func() {
				n, known := statuses[selected.Sel.Name]
				if code := codes[name.Name]; !known || code == "" {
					t.Errorf("%s: %s with %s is not known here", source, name.Name, selected.Sel.Name)
				} else {
					rows[fmt.Sprintf("`%s` | %d", code, n)] = true
				}
			})
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if len(n.Values) != 1 || !strings.HasPrefix(n.Names[0].Name, "refused") {
					return true
				}
				if literal, ok := n.Values[0].(*ast.BasicLit); ok {
					codes[n.Names[0].Name], _ = strconv.Unquote(literal.Value)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "refuse" && len(n.Args) == 3 {
					row(n.Args[0], n.Args[1])
				}
			case *ast.CompositeLit:
				members := make(map[string]ast.Expr)
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						if name, ok := pair.Key.(*ast.Ident); ok {
							members[name.Name] = pair.Value
						}
					}
				}
				if of, ok := n.Type.(*ast.Ident); ok && of.Name == "refusal" {
					row(members["status"], members["reason"])
				}
			}
			return true
		})
	}
	for _, use := range used {
		use()
	}
	for name, code := range codes { // in any order: each is looked for
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(row string) bool { return strings.HasPrefix(row, "`"+code+"` ") }) {
			t.Errorf("%s is a code of nothing", name)
		}
	}
	return slices.Sorted(maps.Keys(rows))
}

// TestDocsHaveTheRefusalsOfTheFront: clients go by these codes, so the page names each, with the status that it has.
func TestDocsHaveTheRefusalsOfTheFront(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources = slices.DeleteFunc(sources, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	page, err := os.ReadFile(gatewayPage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| code | status | means |\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatalf("%s lacks the table of refusals", gatewayPage)
	}
	var said []string
	for line := range strings.Lines(table + "\n") {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.TrimSpace(cells[3]) == "" {
			t.Fatalf("a row of another form: %q", line)
		}
		if row := strings.TrimSpace(cells[1]) + " | " + strings.TrimSpace(cells[2]); !strings.HasPrefix(row, "---") {
			said = append(said, row)
		}
	}
	slices.Sort(said)
	if diff := cmp.Diff(refusals(t, sources...), said); diff != "" {
		t.Errorf("%s does not say what the code does (-code +page):\n%s", gatewayPage, diff)
	}
}
