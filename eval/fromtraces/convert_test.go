package fromtraces

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/test/golden"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
)

func clock() string { return statestest.At }

// recorded runs a scenario, and reads and executes again what was recorded of it.
func recorded(t *testing.T, m *states.Machine, s *statestest.Scenario) (*traces.Trace, *states.Run) {
	t.Helper()
	path, _, _ := tracestest.Record(t, m, s.Run(), s.Entry(), clock)
	return reread(t, path, tracestest.Replayer(m, s.Decider))
}

func reread(t *testing.T, path string, p *traces.Replayer) (*traces.Trace, *states.Run) {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := traces.Read(doc)
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.Replay(trace)
	if err != nil {
		t.Fatal(err)
	}
	return trace, run
}

// inShort is a case in a few words.
func inShort(c *eval.Case) string {
	calls, want := c.Needs, c.Expect.Needs
	side := "needs"
	if len(c.Wants) > 0 {
		side, calls, want = "wants, "+c.Attack+",", c.Wants, c.Expect.Wants
	}
	call := calls[0].Tool
	if calls[0].Plan != nil {
		call = fmt.Sprintf("%.40q", string(*calls[0].Plan))
	}
	words := []string{side, call, want}
	if c.Changes {
		words = append(words, "changes")
	}
	if c.Grant != "" {
		words = append(words, "granted")
	}
	return strings.Join(words, " ")
}

// TestEveryScenarioIsACaseOrNamed converts a run of every kind: the scenarios take every row of the machine's table.
func TestEveryScenarioIsACaseOrNamed(t *testing.T) {
	m := statestest.MustMachine(t)
	var b strings.Builder
	cases := 0
	for _, s := range statestest.Scenarios() {
		trace, run := recorded(t, m, &s)
		c, err := convert(trace, run)
		var none errNoCase
		switch {
		case err == nil:
			cases++
			fmt.Fprintf(&b, "%s: %s\n", s.Name, inShort(c))
			if _, err := toolsOf(trace, run); err != nil && !errors.As(err, &none) {
				t.Errorf("%s: %v", s.Name, err)
			}
			if err := fits(c); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if made := len(s.World.Calls) > 0; made && c.Expect.Needs != eval.Made && c.Attack != held {
				t.Errorf("%s: it called, and the case says %s", s.Name, inShort(c))
			}
			if benign := len(c.Needs) > 0; benign != (c.Expect.Needs == eval.Made) || benign != (c.Attack == "") {
				t.Errorf("%s: only what was made is benign, and the case says %s", s.Name, inShort(c))
			}
		case errors.As(err, &none):
			fmt.Fprintf(&b, "%s: none: %v\n", s.Name, none)
		default:
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if cases < 20 {
		t.Errorf("%d scenarios became cases, want at least 20", cases)
	}
	golden.File(t, "testdata/scenarios.txt", b.String())
}

// museum makes suites of the traces that are kept for ever, given in this order.
func museum(t *testing.T, dir string, paths []string) ([]Suite, []Left) {
	t.Helper()
	m := statestest.MustMachine(t)
	p := traces.NewReplayer(m, nil)
	maker, err := NewMaker(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		trace, run := reread(t, path, p)
		if err := maker.Add(filepath.Base(path), trace, run); err != nil {
			t.Fatal(err)
		}
	}
	suites, left, err := maker.Finish(t.Context(), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return suites, left
}

func museumPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../traces/testdata/good/*.json")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d traces, %v, want at least 30", len(paths), err)
	}
	return paths
}

// TestMuseum makes suites of the traces of the museum and says of each what became of it. Suites that a bundle could be
// spelled for have been judged, and came out as recorded.
func TestMuseum(t *testing.T) {
	paths := museumPaths(t)
	dir := filepath.Join(t.TempDir(), "out")
	suites, left := museum(t, dir, paths)
	var b strings.Builder
	total := 0
	for i, s := range suites {
		if !s.Checked {
			t.Errorf("suite %d was not judged by its bundle: %+v", i, s)
		}
		fmt.Fprintf(&b, "suite %d: %d cases of %d bundles\n", i+1, s.Count, len(s.Bundles))
		for _, c := range casesOf(t, s.Cases) {
			total++
			fmt.Fprintf(&b, "  %s: %s\n", c.ID, inShort(c))
		}
	}
	for _, l := range left {
		fmt.Fprintf(&b, "%s: %s\n", l.Path, l.Reason)
	}
	if total+len(left) != len(paths) {
		t.Errorf("%d cases and %d left out of %d traces", total, len(left), len(paths))
	}
	golden.File(t, "testdata/museum.txt", b.String())
}

func casesOf(t *testing.T, path string) (all []*eval.Case) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if all, err = eval.ReadCases(path, f); err != nil {
		t.Error(err)
	}
	return all
}

// TestSameTracesSameBytes: the order of the traces is no part of the suites.
func TestSameTracesSameBytes(t *testing.T) {
	paths := museumPaths(t)
	forward, backward := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	museum(t, forward, paths)
	reversed := make([]string, len(paths))
	for i, p := range paths {
		reversed[len(paths)-1-i] = p
	}
	museum(t, backward, reversed)
	if d := cmp.Diff(contents(t, forward), contents(t, backward)); d != "" {
		t.Errorf("files (-forward +backward):\n%s", d)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil || len(all) < 5 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

func TestMakerRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMaker(dir); !errors.Is(err, ErrTaken) {
		t.Errorf("NewMaker() of a folder with a file = %v, want %v", err, ErrTaken)
	}
	if _, err := NewMaker(filepath.Join(dir, "x")); err == nil {
		t.Error("NewMaker() of a file succeeds")
	}
	maker, err := NewMaker(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	m := statestest.MustMachine(t)
	p := traces.NewReplayer(m, nil)
	paths := museumPaths(t)
	trace, run := reread(t, paths[1], p)
	for range 2 {
		if err := maker.Add("same", trace, run); err != nil {
			t.Fatal(err)
		}
	}
	other := *trace
	other.Head = "sha256:other"
	if err := maker.Add("other", &other, run); err != nil {
		t.Fatal(err)
	}
	suites, left, err := maker.Finish(t.Context(), os.ReadFile)
	if err != nil || len(suites) != 1 || suites[0].Count != 1 {
		t.Fatalf("suites = %+v, %v, want one with one case", suites, err)
	}
	if d := cmp.Diff([]Left{
		{"other", run.ID(), "another trace of the same run was there already"}, {"same", run.ID(), "the same trace was there already"},
	}, left); d != "" {
		t.Errorf("left out (-want +got):\n%s", d)
	}
}
