package policy_test

import (
	"bytes"
	"flag"
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

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/schema"
	"pgfsm/traces"
)

var update = flag.Bool("update", false, "write docs/reference/errors.md anew")

const errorsPage = "../docs/reference/errors.md"

// A constant is a code as a package declares it, with the comment behind it.
type constant struct{ name, value, comment string }

// codesOf lists the exported string constants of a folder whose name begins with Code.
func codesOf(t *testing.T, folder string) (found []constant) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
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

// TestDocsErrorsIsCurrent holds docs/reference/errors.md to the codes.
func TestDocsErrorsIsCurrent(t *testing.T) {
	want := errorsMarkdown(t)
	if *update {
		if err := os.WriteFile(errorsPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/reference/errors.md is not current; run go test ./policy -run TestDocs -update (-want +got):\n%s", diff)
	}
}

// TestDocsEveryCodeStandsOnce: whatever code a package can give, the page explains it, in one place.
func TestDocsEveryCodeStandsOnce(t *testing.T) {
	page, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
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

func TestDocsSearchSeesCodes(t *testing.T) {
	rows := rowsOf([]byte("| `a_code` | x |\n| `a_code` | y |\ntext with `b_code`\n| `c` | z |\n"))
	if diff := cmp.Diff(map[string]int{"a_code": 2, "c": 1}, rows); diff != "" {
		t.Errorf("rowsOf() (-want +got):\n%s", diff)
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

// errorsMarkdown is docs/reference/errors.md.
func errorsMarkdown(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`# Codes

Every refusal and every failure has a stable code. A code is never renamed and never used for something else. Programs
should look at codes and exit codes, never at the wording of a reason. Generated from the code by
` + "`go test ./policy -run TestDocs -update`" + `.

## Runs and servers

These codes are in ` + "`code`" + ` of a run's result, in ` + "`servers`" + `, in ` + "`pgfsm tools`" + `, and in the note of an answer
whose summary was refused. ` + "`gate`" + ` is the gate that refused; ` + "`schema`" + ` also checks that server and tool exist. It is
` + "`run`" + `, which is not a gate, if no gate decided: an effect failed, or the run was cancelled.

| code | gate | meaning | what to do |
| --- | --- | --- | --- |
`)
	for _, d := range policy.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Code, d.Gate, cell(d.Meaning), cell(d.Remedy))
	}
	b.WriteString(`
## Inside a reason

The schema gate knows more precisely what it does not like. The codes that begin with schema_ stand in parentheses in the
reason of schema_refused. The others are about documents; their reason lists the places, and the code that callers see is
one of the first table. Capitalised words name limits (the type Limits of package policy/schema).

| detail | means |
| --- | --- |
`)
	for _, c := range codesOf(t, "schema") {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, cell(c.comment))
	}
	fmt.Fprintf(&b, `
## Replay

| code | exit | meaning |
| --- | --- | --- |
| %s | 1 | A recorded command or step was not produced when the trace was executed again. |
| %s | 1 | Executing the trace again produced a command or step that is not recorded. |
| %s | 1 | A command, event, fact, transition or the outcome came out otherwise than recorded. |
| %s | 1 | The trace does not fit its hash chain, or its head is not the one given with --head. |
| %s | 2 | The file is not a trace, or cannot be read. |
`, divergence(traces.Missing), divergence(traces.Extra), divergence(traces.Different), "`trace_tampered`", "`trace_unreadable`")
	b.WriteString(`
## Effects

A result that is not an answer says what is known of the call's effect on the world.

| effect | means |
| --- | --- |
| ` + "`not_sent`" + ` | Certainly nothing of the call reached the server. |
| ` + "`unknown`" + ` | Something may have been sent. Look at the system behind the tool before you repeat it. |
| ` + "`done`" + ` | The server answered the call with a result. |

## Exit codes

| exit | means |
| --- | --- |
| 0 | Yes: answered, the planner asks back, every trace replays, every proof holds, the configuration is good. |
| 1 | No: blocked by a gate, a trace was tampered with or diverges, a proof does not hold. |
| 2 | Could not: wrong usage, bad configuration, the run failed, no server answered, a trace cannot be read. |
| 3 | The run waits for an approver. |

[Commands](cli.md#exit-codes) lists every case.
`)
	return b.Bytes()
}

func divergence(kind string) string { return "`" + (&traces.DivergenceError{Kind: kind}).Code() + "`" }

// cell keeps text inside its cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// TestDocsPlanSchemaAgrees: the plan schema of docs/reference/agent-contract.md and the strict reader agree on every plan here.
func TestDocsPlanSchemaAgrees(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/agent-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindSubmatch(page)
	if fence == nil {
		t.Fatal("docs/reference/agent-contract.md has no JSON Schema")
	}
	s, err := schema.Compile(fence[1], schema.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, plan string
		ok         bool
	}{
		{"call", `{"type":"call_tool","server":"s","tool":"t","args":{"a":{"b":[1]}}}`, true},
		{"call-without-args", `{"type":"call_tool","server":"s","tool":"t"}`, false},
		{"args-not-an-object", `{"type":"call_tool","server":"s","tool":"t","args":[]}`, false},
		{"empty-server", `{"type":"call_tool","server":"","tool":"t","args":{}}`, false},
		{"empty-tool", `{"type":"call_tool","server":"s","tool":"","args":{}}`, false},
		{"tool-null", `{"type":"call_tool","server":"s","tool":null,"args":{}}`, false},
		{"unknown-member", `{"type":"call_tool","server":"s","tool":"t","args":{},"why":"x"}`, false},
		{"both-shapes", `{"type":"call_tool","server":"s","tool":"t","args":{},"answer":"x","needs_more_info":true}`, false},
		{"other-case", `{"Type":"call_tool","server":"s","tool":"t","args":{}}`, false},
		{"unknown-type", `{"type":"call_tools","server":"s","tool":"t","args":{}}`, false},
		{"ask", `{"type":"final_answer","answer":"Which one?","needs_more_info":true}`, true},
		{"ask-at-the-limit", `{"type":"final_answer","answer":"` + strings.Repeat("x", policy.MaxAnswerBytes) + `","needs_more_info":true}`, true},
		{"ask-past-the-limit", `{"type":"final_answer","answer":"x` + strings.Repeat("x", policy.MaxAnswerBytes) + `","needs_more_info":true}`, false},
		{"answer-claims-to-be-final", `{"type":"final_answer","answer":"42","needs_more_info":false}`, false},
		{"answer-without-flag", `{"type":"final_answer","answer":"42"}`, false},
		{"flag-is-text", `{"type":"final_answer","answer":"42","needs_more_info":"true"}`, false},
		{"blank-answer", `{"type":"final_answer","answer":" \t\n","needs_more_info":true}`, false},
		{"array", `[]`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := s.Judge([]byte(tc.plan)); (err == nil) != tc.ok {
				t.Errorf("the schema says %v of %s, want ok %t", err, tc.plan, tc.ok)
			}
			if _, v := policy.ReadPlan([]byte(tc.plan), policy.DefaultLimits()); v.Allows() != tc.ok {
				t.Errorf("ReadPlan(%s) = %+v, want ok %t", tc.plan, v, tc.ok)
			}
		})
	}
}
