package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadRefuses reads folders in which one thing is wrong. An error names the file and what helps.
func TestReadRefuses(t *testing.T) {
	good := func(name string) string {
		doc, err := os.ReadFile(filepath.Join("testdata", "results", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(doc)
	}
	attack, metrics, gates := good("attack.json"), good("20260102T030405Z_metrics.json"), good(gatesName)
	const newest = "20260102T030405Z_metrics.json"
	for _, tt := range []struct {
		name, file, doc string
		from, to        string // a part of the document is replaced, once
		want            string
	}{
		{"cut-off", "attack.json", attack[:4000], "", "", "attack.json: "},
		{"cut-off-under-another-name", "mine.json", attack[:4000], "", "", "mine.json: "},
		{"no-json", newest, "{", "", "", newest + ": "},
		{"nothing-in-it", gatesName, "", "", "", gatesName + ": "},
		{"another-format", "attack.json", attack, "pgfsm.attack/v1", "pgfsm.attack/v2", `its format is "pgfsm.attack/v2"`},
		{"unknown-member", "attack.json", attack, `"format"`, `"surprise": 1, "format"`, "surprise"},
		{"member-twice", "attack.json", attack, `"format"`, `"format": "pgfsm.attack/v1", "format"`, "attack.json: "},
		{"no-arms", "attack.json", `{"format": "pgfsm.attack/v1"}`, "", "", "it has no arms"},
		{"unknown-arm", "attack.json", attack, `"naive"`, `"native"`, `the arm "native" is unknown`},
		{"arms-in-another-order", "attack.json", attack, "\"naive\",\n  \"allowlist\"", "\"allowlist\",\n  \"naive\"", `the arm "naive" is unknown, or in the wrong place`},
		{"arm-that-is-not-listed", "attack.json", attack, "\"naive\",\n", "", "overall: it has other arms than the result"},
		{"more-than-all", "attack.json", attack, `"k": 384,`, `"k": 385,`, "overall: arm naive: it counts 385 of 384"},
		{"suite-that-cannot-be", "attack.json", attack, `"n": 144`, `"n": 143`, `suite "ledger": arm naive: it counts 144 of 143`},
		{"text-for-a-number", "attack.json", attack, `"runs": 570`, `"runs": "<script>"`, "attack.json: "},
		{"not-utf-8", "attack.json", attack, `"ledger"`, "\"\xff\"", "attack.json: "},
		{"another-e2e-format", newest, metrics, "pgfsm.e2e/v1", "pgfsm.e2e/v9", `its format is "pgfsm.e2e/v9"`},
		{"no-object", gatesName, "[]", "", "", "it is not a JSON object"},
		{"no-suite", gatesName, "{}", "", "", "it holds no suite"},
		{"unknown-suite", gatesName, gates, `"plan_parse"`, `"plan_parsed"`, `there is no suite "plan_parsed"`},
		{"suite-twice", gatesName, gates, `"plan_parse"`, `"plan_gate"`, gatesName + ": "},
		{"unknown-member-of-a-suite", gatesName, gates, `"slips": 0`, `"slips": 0, "slip": 1`, "policy_gate: "},
		{"deep", gatesName, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "", "", gatesName + ": "},
		{"name-that-is-hostile", "attack\u202e.json", `{"format": "pgfsm.attack/v1"`, "", "", `attack\u202e.json: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := strings.Replace(tt.doc, tt.from, tt.to, 1)
			if tt.from != "" && doc == tt.doc {
				t.Fatalf("the document does not hold %q", tt.from)
			}
			dir := t.TempDir()
			put(t, dir, tt.file, []byte(doc))
			_, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "make it again with this version of pgfsm") {
				t.Errorf("Read() = %v, want an error with %q and a remedy", err, tt.want)
			}
		})
	}
}

func TestReadNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "notes.json", []byte("{}"))
	put(t, dir, "attack.cases.jsonl", []byte("{}"))
	put(t, dir, "metrics.json", []byte("{}"))
	if _, err := Read(dir); !errors.Is(err, ErrNothing) {
		t.Errorf("Read() = %v, want ErrNothing", err)
	}
	if _, err := Read(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read() = %v, want that it does not exist", err)
	}
}

// TestReadOpensRegularFilesOnly: a link could lead out of the folder, and who opens a pipe waits. A name that results must
// have is refused; another is left out.
func TestReadOpensRegularFilesOnly(t *testing.T) {
	good, err := filepath.Abs(filepath.Join("testdata", "results", "attack.json"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, do := range map[string]func(path string) error{ // each in a folder of its own, so that the order does not matter
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink(good, path) },
	} {
		for _, name := range []string{"attack.json", gatesName} {
			t.Run(kind+"-"+name, func(t *testing.T) {
				dir := t.TempDir()
				if err := do(filepath.Join(dir, name)); err != nil {
					t.Skipf("there is no %s here: %v", kind, err)
				}
				_, err := Read(dir)
				if err == nil || !strings.Contains(err.Error(), "it is not a regular file") || errors.Is(err, ErrNothing) != (name == "attack.json") {
					t.Errorf("Read() = %v, want that it is not a regular file", err)
				}
			})
		}
	}
}

func TestReadBoundsFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		size  int64
		large bool
	}{{"at-the-limit", MaxFileBytes, false}, {"one-past-it", MaxFileBytes + 1, true}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), gatesName)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, tt.size); err != nil { // zeros, which are no JSON either
				t.Fatal(err)
			}
			_, err := Read(filepath.Dir(path))
			if err == nil || strings.Contains(err.Error(), "it has more than") != tt.large {
				t.Errorf("Read() = %v, want that it is too large: %t", err, tt.large)
			}
		})
	}
}

// TestReadTakesTheNewest: of two evaluations of one second the later has a number behind the time.
func TestReadTakesTheNewest(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("testdata", "results", "20260102T030405Z_metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "20260102T030405Z-02_metrics.json"
	dir := t.TempDir()
	for _, name := range []string{"20250102T030405Z_metrics.json", "20260102T030405Z_metrics.json", "99999999_metrics.json"} {
		put(t, dir, name, []byte("{}"))
	}
	put(t, dir, want, doc)
	if r := read(t, dir); r.metrics.name != want {
		t.Errorf("Read() took %s, want %s", r.metrics.name, want)
	}
}
