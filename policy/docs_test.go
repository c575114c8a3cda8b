package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/policy/schema"
	"pgfsm/traces"
)

const errorsPage = "../docs/reference/errors.md"

// A constant is a code as a package declares it, with the comment behind it.
type constant struct{ name, value, comment string }

// codesOf lists the exported string constants of a folder whose name begins with Code.
func codesOf(t *testing.T, folder string) (found []constant) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	check.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		check.NoError(t, err)
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				found = append(found, codeConstants(s.(*ast.ValueSpec))...)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s declares no code: the search is blind", folder)
	}
	return found
}

func codeConstants(s *ast.ValueSpec) (found []constant) {
	for i, name := range s.Names {
		if !strings.HasPrefix(name.Name, "Code") || i >= len(s.Values) {
			continue
		}
		lit, ok := s.Values[i].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(lit.Value)
		if err != nil {
			continue
		}
		found = append(found, constant{name.Name, value, strings.TrimSpace(s.Comment.Text())})
	}
	return found
}

// TestDocsErrorsIsCurrent holds the first two tables of docs/reference/errors.md to the codes.
func TestDocsErrorsIsCurrent(t *testing.T) {
	var codes, details strings.Builder
	for _, d := range policy.Codes() {
		fmt.Fprintf(&codes, "| `%s` | %s | %s | %s |\n", d.Code, d.Gate, cell(d.Meaning), cell(d.Remedy))
	}
	for _, c := range codesOf(t, "schema") {
		fmt.Fprintf(&details, "| `%s` | %s |\n", c.value, cell(c.comment))
	}
	golden.Section(t, errorsPage, "| code | gate | meaning | what to do |\n| --- | --- | --- | --- |\n", "\n## Inside", codes.String())
	golden.Section(t, errorsPage, "| detail | means |\n| --- | --- |\n", "\n## Traces", details.String())
}

// TestDocsEveryCodeStandsOnce: whatever code a package can give, the page explains it, in one place.
func TestDocsEveryCodeStandsOnce(t *testing.T) {
	page, err := os.ReadFile(errorsPage)
	check.NoError(t, err)
	rows := rowsOf(page)
	for code, n := range rows {
		if n != 1 {
			t.Errorf("%s stands in %d rows of docs/reference/errors.md, want 1", code, n)
		}
	}
	for _, folder := range []string{".", "evidence", "screen", "schema", "../mcp/upstream"} {
		for _, c := range codesOf(t, folder) {
			if rows[c.value] == 0 {
				t.Errorf("%s %s = %q is not in docs/reference/errors.md", folder, c.name, c.value)
			}
		}
	}
	for _, kind := range []string{traces.Missing, traces.Extra, traces.Different} {
		if code := (&traces.DivergenceError{Kind: kind}).Code(); rows[code] == 0 {
			t.Errorf("the divergence code %s is not in docs/reference/errors.md", code)
		}
	}
}

// TestCodesAreOneTable: each code once, with a sentence that says what it means and one that says what to do.
func TestCodesAreOneTable(t *testing.T) {
	var seen []policy.Code
	for _, d := range policy.Codes() {
		if slices.Contains(seen, d.Code) {
			t.Errorf("Codes() lists %q twice", d.Code)
		}
		seen = append(seen, d.Code)
		if d.Gate == "" || !strings.HasSuffix(d.Meaning, ".") || !strings.HasSuffix(d.Remedy, ".") {
			t.Errorf("Codes() says of %q: gate %q, meaning %q, remedy %q; want a gate and sentences",
				d.Code, d.Gate, d.Meaning, d.Remedy)
		}
	}
}

// rowsOf counts the table rows that explain each code.
func rowsOf(page []byte) map[string]int {
	rows := make(map[string]int)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllSubmatch(page, -1) {
		rows[string(m[1])]++
	}
	return rows
}

// cell keeps text inside its cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// TestDocsPlanSchemaAgrees: the plan schema of docs/reference/agent-contract.md and the strict reader agree on the plans of the corpus.
func TestDocsPlanSchemaAgrees(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/agent-contract.md")
	check.NoError(t, err)
	fence := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindSubmatch(page)
	if fence == nil {
		t.Fatal("docs/reference/agent-contract.md has no JSON Schema")
	}
	s, err := schema.Compile(fence[1], schema.DefaultLimits())
	check.NoError(t, err)
	judged := 0
	for _, c := range plans(t) {
		if !slices.Contains([]string{policy.PlanCallTool, policy.PlanFinalAnswer, string(policy.CodePlanInvalid), string(policy.CodeFinalAnswer)}, c.Want) {
			continue // no strict JSON object
		}
		_, v := policy.ReadPlan(c.Bytes(), policy.DefaultLimits())
		if strings.Contains(v.Reason, "is blank") || strings.Contains(v.Reason, "bytes, at most") {
			continue // JSON Schema counts characters, and knows fewer blank ones
		}
		judged++
		if err := s.Judge(c.Bytes()); (err == nil) != v.Allows() {
			t.Errorf("%s: the schema says %v of %.200s, ReadPlan %+v", c.ID, err, c.Bytes(), v)
		}
	}
	if judged < 50 {
		t.Errorf("%d plans were judged: this shows little", judged)
	}
}
