package states_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgfsm/fsm"
	"pgfsm/fsm/fsmtest"
	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
	"pgfsm/states"
)

const docs, reference = "../docs/internals", "../docs/reference"

// TestDocsMachineIsCurrent holds the pictures and the report in docs to the table.
func TestDocsMachineIsCurrent(t *testing.T) {
	spec := states.Table().Spec()
	for _, page := range []struct {
		name string
		want []byte
	}{
		{"machine.svg", fsm.SVG(spec, nil)},
		{"machine.dot", fsm.DOT(spec, nil)},
		{"machine.txt", fsmtest.Report(spec)},
		{"machine.md", machinePage(spec)},
	} {
		t.Run(page.name, func(t *testing.T) {
			golden.File(t, filepath.Join(docs, page.name), page.want)
		})
	}
}

// machinePage is docs/internals/machine.md.
func machinePage(spec *fsm.Spec) []byte {
	var b bytes.Buffer
	b.WriteString("# The machine\n\n" +
		"For reviewers: every state, every transition with its guard, and the proofs. `go test ./states -run TestDocs -update` generates this page from the\n" +
		"table in `states/table.go`.\n\n" +
		"![The machine](machine.svg)\n\n" +
		"The same as [DOT](machine.dot) and as a [text report](machine.txt) with the triggers that each state does not handle.\n" +
		"`pgfsm graph` draws it, `pgfsm graph --trace FILE` the path of one run.\n\n" +
		"## States\n\n| state | established | terminal |\n| --- | --- | --- |\n")
	for _, p := range spec.Places {
		terminal := ""
		if p.Terminal {
			terminal = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.State, p.Established, terminal)
	}
	b.WriteString("\n## Transitions\n\nA row is taken only if its guard agrees. Guards look at facts and at nothing else.\n\n" +
		"| from | trigger | to | why | guard | what the guard holds |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range spec.Rows {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s | `%s` | %s |\n", r.From, r.On, r.To, r.Why, r.Guard, r.GuardWhy)
	}
	b.WriteString("\n## Proofs\n\nComputed from the table by graph algorithms, each time the machine is compiled and by `pgfsm verify`.\n\n" +
		"| proof | holds | witness |\n| --- | --- | --- |\n")
	for _, p := range fsm.Prove(spec) {
		fmt.Fprintf(&b, "| %s | %t | %s |\n", p.Sentence, p.Holds, p.Witness)
	}
	form := canonical.MustMarshal(spec)
	fmt.Fprintf(&b, "\n## Digest\n\n"+
		"A trace names the machine that recorded it by the digest of the table: the SHA-256 of the 13 bytes `pgfsm machine`, one zero byte\n"+
		"and the [canonical form](../reference/trace-format.md#canonical-form) of the table. That form is the one line in this block, %d bytes without\n"+
		"the line feed at its end:\n\n```json\n%s\n```\n\nIts members are:\n\n"+
		"| member | is |\n| --- | --- |\n"+
		"| `claims` | what the proofs above are computed from: `effects`, `between`, `exits`, `sole_entry` |\n"+
		"| `name` | `pgfsm` |\n"+
		"| `places` | the rows of the table of states, in order: `state`, `established`, `terminal` |\n"+
		"| `rows` | the rows of the table of transitions, in order: `from`, `on` (the trigger), `to`, `why`, `guard`, `guard_why` |\n\n"+
		"The digest, and the member `machine` of every trace that this version records:\n\n    %s\n", len(form), form, canonical.Sum("machine", form))
	return b.Bytes()
}

// TestDocsPackages: docs/internals/architecture.md has every package that is not for tests, with the first sentence of its comment.
func TestDocsPackages(t *testing.T) {
	sentences := make(map[string]string)
	goFiles(t, func(path string, _ *ast.File) {
		folder := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(folder, "test") || strings.HasPrefix(folder, "internal/test/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.PackageClauseOnly|parser.ParseComments)
		check.NoError(t, err)
		words := strings.SplitN(new(doc.Package).Synopsis(file.Doc.Text()), " ", 3) // Package name …
		if len(words) == 3 {
			sentences[folder] = words[2]
		} else if _, found := sentences[folder]; !found {
			sentences[folder] = ""
		}
	})

	table := "\n| package | provides |\n| --- | --- |\n"
	for _, folder := range slices.Sorted(maps.Keys(sentences)) {
		if sentences[folder] == "" {
			t.Errorf("package %s has no comment", folder)
		}
		table += fmt.Sprintf("| `%s` | %s |\n", folder, sentences[folder])
	}
	golden.Section(t, filepath.Join(docs, "architecture.md"), "<!-- packages: generated -->\n", "<!-- end -->\n", table+"\n")
}

// A namedTest is a test as the documentation names it: package folder and function.
type namedTest struct{ folder, name string }

// namedTests finds `folder.TestName`, also Fuzz and Benchmark.
func namedTests(doc []byte) (found []namedTest) {
	pattern := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	for _, m := range pattern.FindAllStringSubmatch(string(doc), -1) {
		found = append(found, namedTest{m[1], m[2]})
	}
	return found
}

// mentions counts test names however they are written, so that none escapes namedTests by its spelling.
func mentions(doc []byte) int { return len(testName.FindAll(doc, -1)) }

var testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)

// TestDocsNameTestsThatExist: every test that the invariants and the threat model lean on is there.
func TestDocsNameTestsThatExist(t *testing.T) {
	have := moduleTests(t)
	for _, page := range []struct {
		name  string
		least int
	}{{"invariants.md", 20}, {"threat-model.md", 20}} {
		doc, err := os.ReadFile(filepath.Join(docs, page.name))
		check.NoError(t, err)
		named := namedTests(doc)
		if len(named) < page.least {
			t.Errorf("%s names %d tests, want at least %d: the search is blind", page.name, len(named), page.least)
		}
		if n := mentions(doc); n != len(named) {
			t.Errorf("%s mentions %d tests, but only %d as `folder.TestName`", page.name, n, len(named))
		}
		for _, n := range named {
			if !slices.Contains(have, n) {
				t.Errorf("%s names %s.%s, which does not exist", page.name, n.folder, n.name)
			}
		}
	}
}

// moduleTests lists every test, fuzz target and benchmark of the module.
func moduleTests(t *testing.T) (all []namedTest) {
	t.Helper()
	goFiles(t, func(path string, file *ast.File) {
		for _, f := range functions(file) {
			if strings.HasSuffix(path, "_test.go") && f.Recv == nil {
				all = append(all, namedTest{filepath.ToSlash(filepath.Dir(path)), f.Name.Name})
			}
		}
	})
	return all
}

// functions are the functions and methods that a file declares.
func functions(file *ast.File) (all []*ast.FuncDecl) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			all = append(all, f)
		}
	}
	return all
}

// TestDocsTraceFormatNamesEveryMember holds the member lists of docs/reference/trace-format.md to the types that are recorded.
func TestDocsTraceFormatNamesEveryMember(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(reference, "trace-format.md"))
	check.NoError(t, err)
	for _, row := range []struct {
		begin string
		value any
	}{
		{"`list_tools`", states.ListTools{}}, {"`complete`", states.Complete{}}, {"`await_decision`", states.AwaitDecision{}},
		{"`call_tool`", states.CallTool{}}, {"`await_report`", states.AwaitReport{}},
		{"`call_reported`", states.CallReported{}}, {"`report_lapsed`", states.ReportLapsed{}},
		{"`tools_listed`", states.ToolsListed{}}, {"`completed`", states.Completed{}}, {"`decided`", states.Decided{}},
		{"`tool_returned`", states.ToolReturned{}}, {"`effect_failed`", states.EffectFailed{}}, {"`interrupted`", states.Interrupted{}},
		{"`screen` | `screened`", states.ScreenedFact{}}, {"`discover` | `discovered`", states.DiscoveredFact{}},
		{"`plan` | `planned`", states.PlannedFact{}}, {"`validate` | `validated`", states.ValidatedFact{}},
		{"`authorize` | `authorized`", states.AuthorizedFact{}}, {"`assess` | `assessed`", states.AssessedFact{}},
		{"`hold` | `pending`", states.HeldFact{}}, {"`approve` | `approved`", states.ApprovedFact{}},
		{"`permit` | `permitted`", states.PermittedFact{}}, {"`dispatch` | `dispatched`", states.DispatchedFact{}},
		{"`delegate` | `delegated`", states.DelegatedFact{}}, {"`report` | `reported`", states.ReportedFact{}},
		{"`lapse` | `unreported`", states.UnreportedFact{}},
		{"`return` | `executed`", states.ExecutedFact{}}, {"`parse` | `typed`", states.TypedFact{}},
		{"`summarize` | `summarized`", states.SummarizedFact{}}, {"`answer` | `answered`", states.AnsweredFact{}},
		{"`ask` | `needs_info`", states.AskedFact{}}, {"`block` | `blocked`", states.StoppedFact{}},
		{"`fail` | `failed`", states.StoppedFact{}},
	} {
		want := fmt.Sprintf("\n| %s | %s |\n", row.begin, members(row.value))
		if n := strings.Count(string(page), want); n != 1 {
			t.Errorf("docs/reference/trace-format.md has the row %q %d times, want once", strings.TrimSpace(want), n)
		}
	}
	for _, inner := range []struct {
		what  string
		value any
	}{
		{"a listing", policy.Listing{}}, {"an exchange", states.Exchange{}}, {"a verdict", policy.Verdict{}},
		{"the outcome", states.Outcome{}}, {"the request", states.Request{}}, {"a tool", states.ToolRef{}},
		{"a server", states.ServerStatus{}}, {"a place", evidence.Place{}}, {"the bundle", policy.Content{}},
	} {
		for name := range strings.SplitSeq(members(inner.value), ", ") {
			name = strings.Trim(name, "`")
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), `"`+name+`"`) {
				t.Errorf("docs/reference/trace-format.md does not name the member %s of %s", name, inner.what)
			}
		}
	}
}

// members lists the JSON names of a struct's members.
func members(v any) string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			names = append(names, "`"+name+"`")
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
