package fromtraces

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
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
	check.NoError(t, err)
	trace, err := traces.Read(doc)
	check.NoError(t, err)
	run, err := p.Replay(trace)
	check.NoError(t, err)
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
		c, err := caseOf(trace, run)
		var none errNoCase
		switch {
		case err == nil:
			cases++
			fmt.Fprintf(&b, "%s: %s\n", s.Name, inShort(c))
			if _, err := toolsOf(trace, run); err != nil && !errors.As(err, &none) {
				t.Errorf("%s: %v", s.Name, err)
			}
			if err := checkReadable(c); err != nil {
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

// museum makes a suite of the traces that are kept for ever, given in this order.
func museum(t *testing.T, dir string, paths []string) *Suite {
	t.Helper()
	suite, err := Make(t.Context(), dir, traces.NewReplayer(statestest.MustMachine(t), nil), paths, func() {})
	check.NoError(t, err)
	return suite
}

func museumPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../traces/testdata/good/*.json")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d traces, %v, want at least 30", len(paths), err)
	}
	return paths
}

// TestMuseum makes a suite of the traces of the museum and says of each what became of it. The cases came out as recorded.
func TestMuseum(t *testing.T) {
	paths := museumPaths(t)
	suite := museum(t, filepath.Join(t.TempDir(), "out"), paths)
	var b strings.Builder
	for _, c := range casesOf(t, suite.Cases) {
		fmt.Fprintf(&b, "%s: %s\n", c.ID, inShort(c))
	}
	for _, l := range suite.Left {
		fmt.Fprintf(&b, "%s: %s\n", filepath.Base(l.Path), l.Reason)
	}
	if suite.Count+len(suite.Left) != len(paths) || len(suite.Bad) > 0 {
		t.Errorf("%d cases, %d left out and %d bad of %d traces", suite.Count, len(suite.Left), len(suite.Bad), len(paths))
	}
	golden.File(t, "testdata/museum.txt", b.String())
}

func casesOf(t *testing.T, path string) (all []*eval.Case) {
	t.Helper()
	f, err := os.Open(path)
	check.NoError(t, err)
	defer f.Close()
	if all, err = eval.ReadCases(path, f); err != nil {
		t.Error(err)
	}
	return all
}

// TestSameTracesSameBytes: the order of the traces is no part of the suite.
func TestSameTracesSameBytes(t *testing.T) {
	paths := museumPaths(t)
	forward := museum(t, filepath.Join(t.TempDir(), "out"), paths)
	slices.Reverse(paths)
	backward := museum(t, filepath.Join(t.TempDir(), "out"), paths)
	if d := cmp.Diff(clitest.Read(t, forward.Cases), clitest.Read(t, backward.Cases)); d != "" {
		t.Errorf("cases (-forward +backward):\n%s", d)
	}
}

// TestMakeRefuses: a folder that holds something is left alone, and a trace that is given twice is one case.
func TestMakeRefuses(t *testing.T) {
	dir := t.TempDir()
	replayer := traces.NewReplayer(statestest.MustMachine(t), nil)
	check.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
	if _, err := Make(t.Context(), dir, replayer, nil, func() {}); !errors.Is(err, ErrTaken) {
		t.Errorf("Make() in a folder with a file = %v, want %v", err, ErrTaken)
	}
	if _, err := Make(t.Context(), filepath.Join(dir, "x"), replayer, nil, func() {}); err == nil {
		t.Error("Make() in the place of a file succeeds")
	}
	path := museumPaths(t)[1]
	suite := museum(t, filepath.Join(dir, "out"), []string{path, path})
	want := []Left{{filepath.ToSlash(path), "the same trace was there already"}}
	if d := cmp.Diff(want, suite.Left); d != "" || suite.Count != 1 {
		t.Errorf("%d cases, want 1; left out (-want +got):\n%s", suite.Count, d)
	}
}
