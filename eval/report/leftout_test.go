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

// TestKindOf takes beginnings of files.
func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		want       kind
	}{
		{"attack", `{"format": "pgfsm.attack/v1", "arms": [`, kindAttack},
		{"attack-in-lines", "{\n \"format\": \"pgfsm.attack/v1\",\n", kindAttack},
		{"another-version", `{"format": "pgfsm.attack/v2"`, kindAttack},
		{"format-that-is-not-first", `{"arms": [{}], "format": "pgfsm.attack/v1"`, kindAttack},
		{"end-to-end", `{"format": "pgfsm.e2e/v1"`, kindMetrics},
		{"gates", `{"plan_gate": {"cases": 1`, kindGates},
		{"name-of-a-suite-further-on", `{"a": 1, "plan_gate": {}}`, kindNone},
		{"format-further-in", `{"a": {"format": "pgfsm.attack/v1"}}`, kindNone},
		{"format-in-a-list", `[{"format": "pgfsm.attack/v1"}]`, kindNone},
		{"format-in-a-text", `"{\"format\": \"pgfsm.attack/v1\"}"`, kindNone},
		{"format-of-others", `{"format": "pgfsm.attacks/v1"}`, kindNone},
		{"format-that-is-no-text", `{"format": 1}`, kindNone},
		{"format-that-does-not-end", `{"format": "pgfsm.attack/v1`, kindNone},
		{"no-format", `{"a": 1}`, kindNone},
		{"one-case-a-line", `{"digest": "sha256:0", "case": "a"}` + "\n{}", kindNone},
		{"no-json", `format: pgfsm.attack/v1`, kindNone},
		{"deep", strings.Repeat(`{"a":`, PeekBytes/5), kindNone},
		{"nothing", "", kindNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := kindOf([]byte(tt.head)); got != tt.want {
				t.Errorf("kindOf() = %d, want %d", got, tt.want)
			}
		})
	}
}

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
	// late is a result whose format ends after so many bytes.
	late := func(end int) string {
		const format = `"format": "pgfsm.attack/v1"`
		return "{" + strings.Repeat(" ", end-1-len(format)) + good[strings.Index(good, format):]
	}
	for _, tt := range []struct {
		name, file, doc string
		left            string // why it is not taken, if it is not
	}{
		{"any-name", "mine.json", good, ""},
		{"at-the-limit", "mine.json", late(PeekBytes), ""},
		{"one-past-it", "mine.json", late(PeekBytes + 1), "mine.json was not taken: it does not begin as results of an evaluation do."},
		{"log-of-cases", "attack.cases.jsonl", good, "-"},
		{"something-else-with-the-word", "attack-notes.json", `{"notes": 1}`, "attack-notes.json was not taken: it does not begin as results of an evaluation do."},
		{"no-json", "attack.json", "{", "attack.json was not taken: it does not begin as results of an evaluation do."},
		{"nothing-in-it", "attack.json", "", "attack.json was not taken: it does not begin as results of an evaluation do."},
		{"end-to-end-with-the-word", "attack-e2e.json", string(metrics), "attack-e2e.json was not taken: results of end to end runs are taken from files that are " +
			"named TIME_metrics.json, as pgfsm eval e2e names them."},
		{"gates-under-another-name", "gates.json", `{"plan_gate": {}}`, "gates.json was not taken: results of the gates alone are taken from the file that is named " +
			"offline_gate_eval.json."},
		{"hostile-name", "a\u202e.json", "", `a\u202e.json was not taken: it does not begin as results of an evaluation do.`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, gatesName)
			put(t, dir, tt.file, []byte(tt.doc))
			r := read(t, dir)
			if got := len(r.attacks) > 0; got != (tt.left == "") {
				t.Errorf("Read() took %s: %t", tt.file, got)
			}
			got := strings.Join(r.notTaken(), "")
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
		want = append(want, name+" was not taken: it does not begin as results of an evaluation do")
	}
	_, err := Read(dir)
	if !errors.Is(err, ErrNothing) || !strings.HasSuffix(err.Error(), "; "+strings.Join(want, "; ")) {
		t.Errorf("Read() = %v, want ErrNothing with the names of all", err)
	}
	put(t, dir, "more.json", nil)
	if _, err := Read(dir); !errors.Is(err, ErrNothing) || !strings.HasSuffix(err.Error(), want[maxLeftOut-1]+"; 1 more JSON file was not taken") {
		t.Errorf("Read() = %v, want ErrNothing with the number of the others", err)
	}
	put(t, dir, "nothing-taken", nil) // no JSON by its name: it is not looked at
	_, again := Read(dir)
	if _, err := Read(dir); cmp.Diff(fmt.Sprint(err), fmt.Sprint(again)) != "" {
		t.Errorf("Read() = %v, then %v", again, err)
	}
}
