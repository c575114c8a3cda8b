package config

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// seeds are the configurations of all archives.
func seeds(t testing.TB) [][]byte { return append(named(t, "*.yaml"), starter) }

// named are the files of all archives whose name matches a pattern.
func named(t testing.TB, pattern string) (out [][]byte) {
	t.Helper()
	names, err := filepath.Glob("testdata/*/*.txtar")
	check.NoError(t, err)
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		check.NoError(t, err)
		for _, f := range a.Files {
			if ok, _ := filepath.Match(pattern, filepath.Base(f.Name)); ok {
				out = append(out, f.Data)
			}
		}
	}
	return out
}

// FuzzParse shows that parse never panics, that every fault says where, and that what the reader accepts means the same when
// it is written as JSON and read again.
func FuzzParse(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseConfig("c.yaml", text); err != nil {
			checkFaults(t, text, err)
		}
		first, clean := openFile("c.yaml", text, MaxFileBytes)
		if clean == nil {
			return
		}
		root := first.readYAML(clean, "")
		if root == nil || len(first.faults) > 0 {
			return
		}
		doc := root.json()
		again := &file{name: "c.json"}
		if got := again.readJSON(doc); got == nil || !bytes.Equal(got.json(), doc) {
			t.Errorf("readYAML(%q) = %s, again as JSON: %v", text, doc, again.err())
		}
	})
}

// FuzzRead shows that no reader panics, that every fault has a place in the file, and that what a reader accepts compiles.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"policy.*", "risk.*", "grant.*"} {
		for _, s := range named(f, pattern) {
			f.Add(strings.TrimSuffix(pattern, ".*"), false, s)
			f.Add(strings.TrimSuffix(pattern, ".*"), true, s)
		}
	}
	f.Fuzz(func(t *testing.T, kind string, isJSON bool, text []byte) {
		name := kind + ".yaml"
		if isJSON {
			name = kind + ".json"
		}
		var err, refused error
		switch kind {
		case "policy":
			var c *rules.Content
			if c, _, err = ReadPolicy(name, text); err == nil {
				_, refused = rules.Compile(*c)
			}
		case "risk":
			var c *risk.Content
			if c, _, err = ReadRisk(name, text); err == nil {
				_, refused = risk.Compile(*c)
			}
		default:
			var g policy.Grant
			if g, err = ReadGrant(name, text); err == nil {
				if _, refused = policy.Compile(policy.Content{Grants: []policy.Grant{g}}); refused != nil && !strings.Contains(refused.Error(), "grant \"") {
					refused = nil // the rest of a configuration is not there
				}
			}
		}
		if err != nil {
			checkFaults(t, text, err)
		}
		if refused != nil {
			t.Errorf("%s: %q is accepted, and Compile refuses it: %v", name, text, refused)
		}
	})
}

// checkFaults holds every fault to a place in the file.
func checkFaults(t *testing.T, text []byte, err error) {
	t.Helper()
	all := err.(Errors)
	if len(all) == 0 || all.Error() == "" {
		t.Errorf("%q has an error that says nothing", text)
	}
	for _, e := range all {
		if e.Problem == "" || e.Line > bytes.Count(text, []byte("\n"))+1 || e.Line > 0 && e.Col < 1 {
			t.Errorf("%q has a fault at %d:%d: %q", text, e.Line, e.Col, e.Problem)
		}
	}
}
