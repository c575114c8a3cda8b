package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
)

const repository = "../.."

// pages are the pages that people read.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		check.NoError(t, err)
		all = append(all, found...)
	}
	if len(all) < 10 {
		t.Fatalf("only %d pages found: the search is blind", len(all))
	}
	return all
}

var (
	linkPattern  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fencePattern = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	headPattern  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// TestDocsLinksLeadSomewhere: every relative link of every page points to a file, and to a heading where it names one.
func TestDocsLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		doc := clitest.Read(t, page)
		for _, fault := range brokenLinks(page, doc) {
			t.Error(fault)
		}
	}
}

func brokenLinks(page, doc string) (faults []string) {
	for _, m := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(doc, ""), -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		path, anchor, _ := strings.Cut(m[1], "#")
		target := page
		if path != "" {
			target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
		}
		text, err := os.ReadFile(target)
		if err != nil {
			if info, statErr := os.Stat(target); statErr != nil || !info.IsDir() || anchor != "" {
				faults = append(faults, fmt.Sprintf("%s: the link %s leads nowhere", page, m[1]))
			}
			continue
		}
		if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
			faults = append(faults, fmt.Sprintf("%s: the link %s names no heading", page, m[1]))
		}
	}
	return faults
}

// anchors are the names that repository hosts give to headings.
func anchors(doc string) (names []string) {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range headPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(doc, ""), -1) {
		names = append(names, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

// commands are the command lines of the shell and console fences of a page, without comments, pipes and redirections.
func commands(doc string) (lines []string) {
	for _, fence := range fencePattern.FindAllStringSubmatch(doc, -1) {
		if fence[1] != "sh" && fence[1] != "console" {
			continue
		}
		for line := range strings.Lines(fence[2]) {
			line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "# ")
			line, _, _ = strings.Cut(line, " #")
			for part := range strings.SplitSeq(strings.ReplaceAll(line, "&&", "|"), "|") {
				part, _, _ = strings.Cut(strings.TrimSpace(part), " > ")
				part = strings.Replace(part, "go run ./cmd/pgfsm", "pgfsm", 1)
				if rest, ok := strings.CutPrefix(part, "pgfsm "); ok {
					lines = append(lines, rest)
				}
			}
		}
	}
	return lines
}

// split splits a line as a shell does, as far as the pages need it.
func split(line string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|([^\s'"]+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2]+m[3])
	}
	return words
}

// parses says why a command line is none, or nil. It runs nothing.
func parses(args []string) error {
	cmd, rest, err := newRoot(world{}).Find(args)
	if err != nil {
		return err
	}
	if !cmd.HasParent() {
		return fmt.Errorf("there is no command %q", args[0])
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestDocsCommandsParse: every command of the pages exists, with its flags and as many arguments as it takes.
func TestDocsCommandsParse(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		doc := clitest.Read(t, page)
		for _, line := range commands(doc) {
			checked++
			if strings.HasPrefix(line, "completion ") || strings.HasPrefix(line, "help") {
				continue // cobra adds these when it runs
			}
			if err := parses(split(line)); err != nil {
				t.Errorf("%s: pgfsm %s: %v", page, line, err)
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d commands found: the search is blind", checked)
	}
}

// TestDocsTraceExampleReplays: the worked example of docs/reference/trace-format.md is a trace, replays, and has the digests that
// stand beside it, each taken as the page says.
func TestDocsTraceExampleReplays(t *testing.T) {
	path := filepath.Join(repository, "docs", "reference", "trace-format.md")
	page := clitest.Read(t, path)
	begin, end := strings.Index(page, "```json\n"), strings.Index(page, "Complete traces ")
	if begin < 0 || end < begin {
		t.Fatal("docs/reference/trace-format.md has no worked example")
	}
	want := workedExample(t)
	if *update {
		check.NoError(t, os.WriteFile(path, []byte(page[:begin]+want+page[end:]), 0o644))
	} else if diff := cmp.Diff(want, string(page[begin:end])); diff != "" {
		t.Errorf("the worked example is not current; run go test ./cmd/pgfsm -run TestDocs -update (-want +got):\n%s", diff)
	}
}

// workedExample records the smallest run there is and shows how its digests come about.
func workedExample(t *testing.T) string {
	t.Helper()
	const at, id = "2026-11-21T09:00:00.000Z", "01a1fd65-2b00-7000-8000-000000000001"
	bundle, err := policy.Compile(policy.Content{
		Format: policy.ContentFormat, Env: "dev", Input: policy.Input{MaxBytes: 16},
		Planner: policy.Planner{Mode: policy.PlannerRouter}, Summary: policy.SummaryAsked, Limits: policy.DefaultLimits(),
	})
	check.NoError(t, err)
	m, err := states.NewMachine()
	check.NoError(t, err)
	request := states.Request{Actor: "local:alice", At: at, Kind: states.KindAsk, Text: []byte("Summarize policy policy-002")}
	r := states.NewRun(id, request, bundle)
	_, doc, trace := tracestest.Record(t, m, r, &states.Live{}, func() string { return at })
	if _, err := traces.NewReplayer(m, nil).Replay(trace); err != nil {
		t.Errorf("the worked example does not replay: %v", err)
	}
	return explained(t, doc, trace)
}

// explained shows a trace of one step and what each of its digests is taken over, found in the document itself.
func explained(t *testing.T, doc []byte, trace *traces.Trace) string {
	t.Helper()
	type members = map[string]jsontext.Value
	var whole, bundleMembers members
	var steps []members
	err := json.Unmarshal(doc, &whole)
	check.NoError(t, errors.Join(err, json.Unmarshal(whole["bundle"], &bundleMembers), json.Unmarshal(whole["steps"], &steps)))
	delete(steps[0], "hash")
	header := canonical.MustMarshal(members{
		"bundle": bundleMembers["digest"], "format": whole["format"], "machine": whole["machine"],
		"request": whole["request"], "run_id": whole["run_id"],
	})
	step := canonical.MustMarshal(steps[0])
	last := canonical.MustMarshal(members{"last": canonical.MustMarshal(trace.Steps[0].Hash), "outcome": whole["outcome"]})
	var b strings.Builder
	fmt.Fprintf(&b, "```json\n%s```\n\nThe bundle's digest is computed from its `content`:\n\n", doc)
	show := func(kind string, of []byte, recorded canonical.Digest) {
		if got := canonical.Sum(kind, of); got != recorded {
			t.Errorf("digest(%s) as the page says is %s, the trace has %s", kind, got, recorded)
		}
		fmt.Fprintf(&b, "    %-22s%s\n\n", "digest("+kind+")", recorded)
	}
	show("bundle", bundleMembers["content"], trace.Header.Bundle.Digest)
	fmt.Fprintf(&b, "The header is\n\n    %s\n\n", header)
	show("trace header", header, trace.Steps[0].Prev)
	fmt.Fprintf(&b, "The step without its hash is\n\n    %s\n\n", step)
	show("trace step", step, trace.Steps[0].Hash)
	fmt.Fprintf(&b, "The head is computed from\n\n    %s\n\n", last)
	show("trace head", last, trace.Head)
	return b.String()
}

// TestDocsDependencies: every module that go.mod requires directly has its sentence in docs/internals/dependencies.md.
func TestDocsDependencies(t *testing.T) {
	page := clitest.Read(t, filepath.Join(repository, "docs", "internals", "dependencies.md"))
	var modules []string
	for _, path := range []string{"go.mod", "packaging/go.mod"} {
		mod, err := modfile.ParseLax(path, []byte(clitest.Read(t, filepath.Join(repository, path))), nil)
		check.NoError(t, err)
		for _, m := range mod.Require {
			modules = append(modules, m.Mod.Path)
			if n := strings.Count(page, "\n| `"+m.Mod.Path+"` | "); !m.Indirect && n != 1 {
				t.Errorf("docs/internals/dependencies.md explains %s %d times, want once", m.Mod.Path, n)
			}
		}
	}
	if len(modules) < 15 {
		t.Fatalf("go.mod requires %d modules: the search is blind", len(modules))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.[^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		if !slices.Contains(modules, m[1]) {
			t.Errorf("docs/internals/dependencies.md explains %s, which go.mod does not require", m[1])
		}
	}
}

// TestDocsContractNamesEveryMember holds docs/reference/agent-contract.md to the documents that --json prints.
func TestDocsContractNamesEveryMember(t *testing.T) {
	page := clitest.Read(t, filepath.Join(repository, "docs", "reference", "agent-contract.md"))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[present.Outcome]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if n := strings.Count(page, "\n| `"+name+"` | "); n != 1 && name != "-" {
			t.Errorf("docs/reference/agent-contract.md has %d rows for the member %s, want 1", n, name)
		}
	}
	for _, inner := range []reflect.Type{reflect.TypeFor[present.Tool](), reflect.TypeFor[traces.Checked]()} {
		for _, f := range reflect.VisibleFields(inner) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/reference/agent-contract.md does not name the member %s", name)
			}
		}
	}
}
