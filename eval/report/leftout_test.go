package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResultsAreFoundByWhatTheyHold reads folders in which results of attacks have other names than the usual.
func TestResultsAreFoundByWhatTheyHold(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("testdata", "results", "attack.json"))
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile(filepath.Join("testdata", "results", "20260102T030405Z_metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	good := string(doc)
	noResult := func(name string) string { return name + " was left out: " + errNoResult.Error() + "." }
	for _, tt := range []struct {
		name, file, doc string
		left            string // why it is not taken, if it is not
	}{
		{"any-name", "mine.json", good, ""},
		{"log-of-cases", "attack.cases.jsonl", good, "-"},
		{"other-name-with-the-word", "attack-notes.json", `{"notes": 1}`, noResult("attack-notes.json")},
		{"format-further-in", "mine.json", `{"a": {"format": "pgfsm.attack/v1"}}`, noResult("mine.json")},
		{"format-of-others", "mine.json", `{"format": "pgfsm.attacks/v1"}`, noResult("mine.json")},
		{"no-json", "attack.json", "{", noResult("attack.json")},
		{"nothing-in-it", "attack.json", "", noResult("attack.json")},
		{"end-to-end-with-the-word", "attack-e2e.json", string(metrics), noResult("attack-e2e.json")},
		{"gates-under-another-name", "gates.json", `{"plan_gate": {}}`, noResult("gates.json")},
		{"hostile-name", "a\u202e.json", "", noResult(`a\u202e.json`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, gatesName)
			put(t, dir, tt.file, []byte(tt.doc))
			r := read(t, dir)
			if got := len(r.attacks) > 0; got != (tt.left == "") {
				t.Errorf("Read() took %s: %t", tt.file, got)
			}
			got := strings.Join(r.notRead(), "")
			if want := strings.TrimSuffix(strings.Trim(tt.left, "-"), "."); got != want {
				t.Errorf("left out: %q, want %q", got, want)
			}
			if missing := strings.Join(r.Missing(), "\n"); !strings.HasSuffix(missing, strings.Trim(tt.left, "-")) {
				t.Errorf("Missing() = %q, want %q in it", missing, tt.left)
			}
		})
	}
}

// TestFilesThatAreLeftOutAreCounted takes them to the number that is named, and one past it.
func TestFilesThatAreLeftOutAreCounted(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range maxLeftOut {
		name := fmt.Sprintf("%02d.json", i)
		put(t, dir, name, nil)
		want = append(want, name+" was left out: "+errNoResult.Error())
	}
	_, err := Read(dir)
	if !errors.Is(err, ErrNothing) || !strings.HasSuffix(err.Error(), "; "+strings.Join(want, "; ")) {
		t.Errorf("Read() = %v, want ErrNothing with the names of all", err)
	}
	put(t, dir, "more.json", nil)
	if _, err := Read(dir); !errors.Is(err, ErrNothing) || !strings.HasSuffix(err.Error(), want[maxLeftOut-1]+"; 1 more JSON file was left out") {
		t.Errorf("Read() = %v, want ErrNothing with the number of the others", err)
	}
	put(t, dir, "nothing-taken", nil) // no JSON by its name: it is not looked at
	_, again := Read(dir)
	if _, err := Read(dir); cmp.Diff(fmt.Sprint(err), fmt.Sprint(again)) != "" {
		t.Errorf("Read() = %v, then %v", again, err)
	}
}
