package settings

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// seeds are the configurations of all archives.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(text).Files {
			if filepath.Ext(f.Name) == ".yaml" {
				out = append(out, f.Data)
			}
		}
	}
	return append(out, Starter())
}

func TestSeedsAreThere(t *testing.T) {
	if n := len(seeds(t)); n < 100 {
		t.Errorf("%d seeds, want at least 100", n)
	}
}

// FuzzParse shows that Parse never panics, that every fault says where, and that what it accepts means the same when
// it is written as JSON, which is YAML, and read again.
func FuzzParse(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Parse("c.yaml", text)
		if err != nil {
			if errs := err.(Errors); len(errs) == 0 || errs.Error() == "" {
				t.Errorf("Parse(%q) = an error that says nothing", text)
			}
			return
		}
		doc := first.root.json()
		again, err := Parse("c.yaml", doc)
		if err != nil {
			t.Fatalf("Parse(%q) accepts, but not as JSON: %v\n%s", text, err, doc)
		}
		if got := again.root.json(); !bytes.Equal(got, doc) {
			t.Errorf("Parse(%q) = %s, again %s", text, doc, got)
		}
	})
}

// FuzzAllowlist shows that the JSON reader never panics and finds the same faults as the strict decoder.
func FuzzAllowlist(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":["b"]}`, `{"a":["b"],"a":[]}`, `{"a":[1,]}`, "{\"é\":[\n\"b\"]} x", `[[[`, `{"a":"\ud800"}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		src, clean := checkText("a.json", text)
		if clean == nil {
			return
		}
		readJSON(src, clean)
		src.err()
		if strict := strictJSON(clean); (strict == nil) != (len(src.faults) == 0) {
			t.Errorf("readJSON(%q) found %d faults, the strict decoder: %v", clean, len(src.faults), strict)
		}
	})
}
