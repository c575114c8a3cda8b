package pins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
)

// bundle has the server "kb".
var bundle = statestest.MustBundle(statestest.Content(), nil)

// defined is a tool as a server sends it.
func defined(name, description string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, description)
}

// write writes an allowlist file for the server.
func write(t *testing.T, allowlist string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "allowlist.json")
	check.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(allowlist, "kb", statestest.Server)), 0o600))
	return path
}

func beside(path string) string { return strings.TrimSuffix(path, ".json") + ".pins.json" }

func text(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check.NoError(t, err)
	return string(text)
}

// an approval reads the files, compares them with what the server lists, and pins.
type approval struct {
	names    []string
	expected canonical.Digest
	between  func() // reading and writing
}

func (a approval) of(path string, tools ...string) ([]pins.Entry, error) {
	f, err := pins.Read(path)
	if err != nil {
		return nil, err
	}
	d, err := pins.ReadDefinitions(path)
	if err != nil {
		return nil, err
	}
	entries, err := f.Select(a.names...)
	if err != nil {
		return nil, err
	}
	if _, err := f.Compare(entries, bundle, "", statestest.Listings(`{"tools":[`+strings.Join(tools, ",")+`]}`)); err != nil {
		return nil, err
	}
	if a.between != nil {
		a.between()
	}
	return entries, f.Approve(entries, a.expected, false, d)
}

func (a approval) must(t *testing.T, path string, tools ...string) []pins.Entry {
	t.Helper()
	entries, err := a.of(path, tools...)
	check.NoError(t, err)
	return entries
}

// TestSelect shows that names choose tools, and never one that the allowlist does not have.
func TestSelect(t *testing.T) {
	f, err := pins.Read(write(t, `{"s":["a","b"],"r":["a"],"empty":[]}`))
	check.NoError(t, err)
	for _, tt := range []struct {
		names string
		tools int // -1: an error
	}{{"", 3}, {"s", 2}, {"empty", 0}, {"s a", 1}, {"q", -1}, {"s c", -1}, {"empty a", -1}, {"a", -1}} {
		tools, err := f.Select(strings.Fields(tt.names)...)
		if got := len(tools); (err == nil) != (tt.tools >= 0) || err == nil && got != tt.tools {
			t.Errorf("Select(%q) = %d tools, %v, want %d", tt.names, got, err, tt.tools)
		}
	}
}

// TestApproveOverwritesNoChange shows that nothing is written if another program changed a file meanwhile.
func TestApproveOverwritesNoChange(t *testing.T) {
	for _, file := range []func(string) string{func(path string) string { return path }, beside} {
		path := write(t, `{"kb":["look"]}`)
		before := text(t, path)
		changed := file(path)
		_, err := approval{between: func() {
			if err := os.WriteFile(changed, []byte(`{"a":[]}`), 0o600); err != nil {
				t.Error(err)
			}
		}}.of(path, defined("look", "Looks."))
		if err == nil || !strings.Contains(err.Error(), "is no longer what was read: run the command again") {
			t.Errorf("Approve() with a changed %s = %v", filepath.Base(changed), err)
		}
		if got := text(t, changed); got != `{"a":[]}` {
			t.Errorf("%s = %s, want the change", filepath.Base(changed), got)
		}
		if changed != path && text(t, path) != before {
			t.Error("the allowlist was written")
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// TestApproveLocks shows that nothing is written while another process has the lock.
func TestApproveLocks(t *testing.T) {
	path := write(t, `{"kb":["look"]}`)
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatalf("TryLock() = %t, %v", ok, err)
	}
	if _, err := (approval{}).of(path, defined("look", "Looks.")); err == nil || !strings.Contains(err.Error(), "is being written by another pgfsm") {
		t.Errorf("Approve() = %v", err)
	}
	if _, err := os.Stat(beside(path)); !os.IsNotExist(err) {
		t.Errorf("definitions were written: %v", err)
	}
	check.NoError(t, lock.Unlock())
	approval{}.must(t, path, defined("look", "Looks."))
}

// TestReadTrustsNoFileOfOthers shows that files that other users may write are refused.
func TestReadTrustsNoFileOfOthers(t *testing.T) {
	for _, file := range []func(string) string{func(path string) string { return path }, beside} {
		path := write(t, `{"kb":["look"]}`)
		approval{}.must(t, path, defined("look", "Looks."))
		check.NoError(t, os.Chmod(file(path), 0o666))
		if _, err := (approval{}).of(path, defined("look", "Looks.")); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("with a writable %s: %v", filepath.Base(file(path)), err)
		}
	}
}

// TestDefinitions shows that stored definitions have the digests of pins, and that those of the latest two pins of a tool are stored: if the
// allowlist cannot be written, nothing is lost.
func TestDefinitions(t *testing.T) {
	path := write(t, `{"kb":["look","other"]}`)
	const first = "First.\x1b\u202e"
	other := defined("other", "Looks.")
	look := func(description string) string {
		return `{"name":"look","description":` + string(canonical.MustMarshal(description)) + `,"inputSchema":{"type":"object"}}`
	}
	approval{}.must(t, path, look(first), other)
	stored, err := canonical.JSON([]byte(text(t, beside(path))))
	check.NoError(t, err)
	for name, v := range canonical.Members(stored) {
		if name != string(canonical.Sum("tool definition", v)) {
			t.Errorf("%s is not the digest of its definition", name)
		}
	}
	if text := text(t, beside(path)); strings.ContainsAny(text, "\x1b\u202e") || !strings.HasSuffix(text, "}\n") {
		t.Errorf("definitions = %q, want nothing that a terminal obeys", text)
	}
	approve := func(description string) string {
		f, err := pins.Read(path)
		check.NoError(t, err)
		entries, err := f.Select(statestest.Server, "look")
		check.NoError(t, err)
		if _, err := f.Compare(entries, bundle, "", statestest.Listings(`{"tools":[`+look(description)+`,`+other+`]}`)); err != nil {
			t.Fatal(err)
		}
		e := approval{names: []string{statestest.Server, "look"}, expected: entries[0].Definition}.must(t, path, look(description), other)
		if e[0].Status != pins.Pinned || e[0].Was == "" {
			t.Fatalf("Approve() = %+v", e[0])
		}
		return string(e[0].Pin)
	}
	second, third := approve("Second."), approve("Third.")
	if text := text(t, beside(path)); !strings.Contains(text, second) || !strings.Contains(text, third) || strings.Contains(text, "First.") {
		t.Errorf("definitions = %s, want the second and the third", text)
	}
}

// TestDefinitionsThatWereNotApproved shows that a definition is used only if it has the digest of the pin, and that approving an unchanged
// tool stores it again.
func TestDefinitionsThatWereNotApproved(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(text string) string // "" removes the file
		warning string
	}{
		{"no-file", func(string) string { return "" }, ""},
		{"definition-left-out", func(string) string { return "{}" }, ""},
		{"definition-changed", func(s string) string { return strings.Replace(s, "Looks", "Books", 1) }, "1 of 1 definitions do not have"},
		{"not-json", func(string) string { return "{" }, "not strict JSON"},
		{"name-twice", func(string) string { return `{"a":1,"a":1}` }, "not strict JSON"},
		{"not-an-object", func(string) string { return "[]" }, "is not an object of definitions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, `{"kb":["look"]}`)
			approval{}.must(t, path, defined("look", "Looks."))
			stored := text(t, beside(path))
			check.NoError(t, os.Remove(beside(path)))
			if text := tt.change(stored); text != "" {
				check.NoError(t, os.WriteFile(beside(path), []byte(text), 0o600))
			}
			d, err := pins.ReadDefinitions(path)
			if err != nil || (d.Warning == "") != (tt.warning == "") || !strings.Contains(d.Warning, tt.warning) {
				t.Fatalf("ReadDefinitions() = %+v, %v, want the warning %q", d, err, tt.warning)
			}
			changed := approval{}.must(t, path, defined("look", "Changed."))
			if changes, ok := d.Diff(&changed[0]); ok || changed[0].Status != pins.Changed {
				t.Errorf("Diff() = %+v, %t, and the status is %s", changes, ok, changed[0].Status)
			}
			approval{}.must(t, path, defined("look", "Looks."))
			if got := text(t, beside(path)); got != stored {
				t.Errorf("definitions = %s, want %s", got, stored)
			}
		})
	}
}

// TestCatalog shows that a catalog of stored definitions has the pinned tools alone.
func TestCatalog(t *testing.T) {
	path := write(t, `{"kb":["look","other"]}`)
	approval{names: []string{statestest.Server, "look"}}.must(t, path, defined("look", "Looks."), defined("other", "Looks."))
	content := statestest.Content()
	var err error
	if content.Allowlist, content.Pins, err = config.ReadPins("a.json", []byte(text(t, path))); err != nil {
		t.Fatal(err)
	}
	content.Outputs = nil
	d, err := pins.ReadDefinitions(path)
	check.NoError(t, err)
	c, err := d.Catalog(statestest.MustBundle(content, nil))
	if err != nil || len(c.Effective()) != 1 || c.Effective()[0].Name != "look" {
		t.Errorf("Catalog() = %+v, %v, want the tool look", c, err)
	}
}

func TestArguments(t *testing.T) {
	approved := approval{}.must(t, write(t, `{"kb": ["x"]}`),
		`{"name":"x","inputSchema":{"type":"object","properties":{"to":{},"cc":{},"body":true},"required":["to"]}}`)
	if got := strings.Join(approved[0].Arguments(), " "); got != "body? cc? to" {
		t.Errorf("Arguments() = %q, want the names, sorted, and ? behind the optional ones", got)
	}
}
