package report_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/eval/report"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/internal/visible"
)

const (
	attackFile  = "attack.json"
	metricsFile = "20260102T030405Z_metrics.json"
	gatesFile   = "offline_gate_eval.json"
)

func readFolder(t *testing.T, dir string) *report.Results {
	t.Helper()
	r, err := report.Read(dir)
	check.NoError(t, err)
	return r
}

func pageOf(t *testing.T, dir string) []byte {
	t.Helper()
	page, err := readFolder(t, dir).HTML()
	check.NoError(t, err)
	return page
}

func stored(t *testing.T, name string) string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", "results", name))
	check.NoError(t, err)
	return string(doc)
}

// folder makes a folder of files, given by name and text.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		check.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	return dir
}

func resultFile(t *testing.T, r *attack.Result) string {
	t.Helper()
	doc, err := json.Marshal(r, json.Deterministic(true))
	check.NoError(t, err)
	return string(doc)
}

// TestPage compares the page with a file that was looked at. Run with -update, and look at what changed.
func TestPage(t *testing.T) {
	golden.File(t, "testdata/report.html", pageOf(t, "testdata/results"))
}

// TestHostileTextStaysText: texts of files are neither markup nor invisible, and a page stays of a size that a browser can show.
func TestHostileTextStaysText(t *testing.T) {
	page := pageOf(t, hostile(t))
	for _, bad := range []string{"<script", "<img", "<iframe", "<base", "<link", "</style><", "onload='", `onerror="`, "]]><"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("the page holds %s", bad)
		}
	}
	if text := string(page); visible.Lines(text) != text || !utf8.ValidString(text) {
		t.Error("the page holds invisible characters")
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes, want at most 1 MiB", len(page))
	}
}

// TestMissingResultsAreNamed reads folders with one kind of results.
func TestMissingResultsAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		missing    []string
	}{
		{"attacks-alone", attackFile, []string{"pgfsm-eval e2e", "pgfsm-eval gates"}},
		{"end-to-end-alone", metricsFile, []string{"pgfsm-eval attack", "pgfsm-eval gates"}},
		{"gates-alone", gatesFile, []string{"pgfsm-eval attack", "pgfsm-eval e2e"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := folder(t, tc.file, stored(t, tc.file))
			missing := readFolder(t, dir).Missing()
			if len(missing) != len(tc.missing) {
				t.Fatalf("missing %q, want %q", missing, tc.missing)
			}
			page := pageOf(t, dir)
			for i, command := range tc.missing {
				if !strings.Contains(missing[i], command) || !bytes.Contains(page, []byte(missing[i])) {
					t.Errorf("missing %q, want %s, and the same on the page", missing[i], command)
				}
			}
		})
	}
}

// TestListsAreCut: a list that is longer than 200 entries says how many are left out.
func TestListsAreCut(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		want bool
	}{
		{"at-the-limit", 200, false},
		{"one-past-the-limit", 201, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			arm := attack.ArmSection{Arm: attack.Approvals, Attack: eval.NewShare(tc.n, tc.n)}
			for i := range tc.n {
				arm.Stopped = append(arm.Stopped, attack.Stopped{Gate: "policy", Code: fmt.Sprintf("n%d", i), Wants: 1})
			}
			r := &attack.Result{Format: attack.Format, Arms: []attack.Arm{attack.Approvals}, Overall: attack.Section{Attacks: tc.n, Arms: []attack.ArmSection{arm}}}
			page := string(pageOf(t, folder(t, "a.json", resultFile(t, r))))
			if got := strings.Contains(page, "<p>1 more are left out.</p>"); got != tc.want {
				t.Errorf("the page says that an entry is left out: %t, want %t", got, tc.want)
			}
		})
	}
}
