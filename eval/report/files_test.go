package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval/report"
	"pgfsm/internal/test/check"
)

// TestReadRefuses reads folders in which one thing is wrong. The error names the file and the remedy.
func TestReadRefuses(t *testing.T) {
	attacks, metrics, gates := stored(t, attackFile), stored(t, metricsFile), stored(t, gatesFile)
	for _, tc := range []struct {
		name, file, doc string
		from, to        string // a part of the document is replaced, once
		want            string
	}{
		{"cut-off-under-any-name", "mine.json", attacks[:4000], "", "", "mine.json: "},
		{"another-format", attackFile, attacks, "pgfsm.attack/v1", "pgfsm.attack/v2", `its format is "pgfsm.attack/v2"`},
		{"unknown-member", attackFile, attacks, `"format"`, `"surprise": 1, "format"`, "surprise"},
		{"member-twice", attackFile, attacks, `"format"`, `"format": "pgfsm.attack/v1", "format"`, attackFile + ": "},
		{"no-arms", attackFile, `{"format": "pgfsm.attack/v1"}`, "", "", "its arms are none"},
		{"unknown-arm", attackFile, attacks, `"naive"`, `"native"`, "its arms are none, unknown"},
		{"arms-in-another-order", attackFile, attacks, "\"naive\",\n    \"allowlist\"", "\"allowlist\",\n    \"naive\"", "in another order"},
		{"arm-that-is-not-listed", attackFile, attacks, "\"naive\",\n", "", "has other arms than the result"},
		{"not-utf-8", attackFile, attacks, `"ledger"`, "\"\xff\"", attackFile + ": "},
		{"another-e2e-format", metricsFile, metrics, "pgfsm.e2e/v1", "pgfsm.e2e/v9", `its format is "pgfsm.e2e/v9"`},
		{"another-gates-format", gatesFile, gates, "pgfsm.gates/v1", "pgfsm.gates/v0", `its format is "pgfsm.gates/v0"`},
		{"hostile-name", "attack\u202e.json", `{"format": "pgfsm.attack/v1"`, "", "", `attack\u202e.json: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := strings.Replace(tc.doc, tc.from, tc.to, 1)
			if tc.from != "" && doc == tc.doc {
				t.Fatalf("the document does not hold %q", tc.from)
			}
			_, err := report.Read(folder(t, tc.file, doc))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "make it again with this version") {
				t.Errorf("Read() = %v, want an error with %q and a remedy", err, tc.want)
			}
		})
	}
}

// TestOtherFilesAreLeftOut: a JSON file that is no result of attacks is named and left out, whatever its name.
func TestOtherFilesAreLeftOut(t *testing.T) {
	for _, tc := range []struct{ name, file, doc string }{
		{"other-document", "attack-notes.json", `{"notes": 1}`},
		{"format-further-in", "mine.json", `{"a": {"format": "pgfsm.attack/v1"}}`},
		{"format-of-others", "mine.json", `{"format": "pgfsm.attacks/v1"}`},
		{"no-json", attackFile, "{"},
		{"nothing-in-it", attackFile, ""},
		{"deep", "mine.json", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := readFolder(t, folder(t, gatesFile, stored(t, gatesFile), tc.file, tc.doc))
			if missing := strings.Join(r.Missing(), "\n"); len(r.Attacks) > 0 || !strings.Contains(missing, tc.file+" is left out: ") {
				t.Errorf("%d results of attacks, missing %q, want that %s is left out", len(r.Attacks), missing, tc.file)
			}
		})
	}
	_, err := report.Read(folder(t, "notes.json", "{}", "attack.cases.jsonl", "{}"))
	if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), "notes.json is left out") {
		t.Errorf("Read() = %v, want ErrNothing with the file that is left out", err)
	}
	if _, err := report.Read(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read() = %v, want that the folder does not exist", err)
	}
}

// TestReadOpensRegularFilesOnly: a link could lead out of the folder.
func TestReadOpensRegularFilesOnly(t *testing.T) {
	target, err := filepath.Abs(filepath.Join("testdata", "results", attackFile))
	check.NoError(t, err)
	dir := folder(t, gatesFile, stored(t, gatesFile))
	if err := os.Symlink(target, filepath.Join(dir, attackFile)); err != nil {
		t.Skipf("there are no links here: %v", err)
	}
	if missing := strings.Join(readFolder(t, dir).Missing(), "\n"); !strings.Contains(missing, attackFile+" is left out: it is not a regular file") {
		t.Errorf("missing %q, want that %s is not a regular file", missing, attackFile)
	}
}

// TestReadTakesTheNewest: of several end-to-end evaluations the page shows the last.
func TestReadTakesTheNewest(t *testing.T) {
	r := readFolder(t, folder(t, "20250102T030405Z_metrics.json", stored(t, metricsFile), metricsFile, stored(t, metricsFile)))
	if len(r.Sources) != 1 || r.Sources[0].Name != metricsFile {
		t.Errorf("Read() took %+v, want %s", r.Sources, metricsFile)
	}
}
