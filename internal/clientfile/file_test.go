package clientfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/clientfile"
	"pgfsm/internal/test/check"
)

const entryValue = `{"url":"http://127.0.0.1:8787/mcp"}`

// file writes a client's file and reads it.
func file(t *testing.T, text string, mode os.FileMode) (string, *clientfile.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcp.json")
	check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	check.NoError(t, os.Chmod(path, mode))
	f, err := clientfile.Read(path)
	check.NoError(t, err)
	return path, f
}

// set adds an entry to a file with a content.
func set(t *testing.T, text string) (edited []byte, change string, err error) {
	t.Helper()
	_, f := file(t, text, 0o600)
	return f.Set("mcpServers", "pgfsm", jsontext.Value(entryValue))
}

// TestSet shows that the entry is in its place, and that every other value is as it was.
func TestSet(t *testing.T) {
	const entry = `"pgfsm":{"url":"http://127.0.0.1:8787/mcp"}`
	for _, c := range []struct{ name, was, change, want string }{
		{"no-file", "", clientfile.Added, `{"mcpServers":{` + entry + `}}`},
		{"empty-object", "{}", clientfile.Added, `{"mcpServers":{` + entry + `}}`},
		{"no-servers-yet", "{\n    \"a\": 1.0\n}\n", clientfile.Added, `{"mcpServers":{` + entry + `},"a":1.0}`},
		{"beside-others", `{"mcpServers": {"a": {"command":"\u0061"}}, "b": "\/"}`, clientfile.Added,
			`{"mcpServers":{` + entry + `,"a":{"command":"\u0061"}},"b":"\/"}`},
		{"same", `{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`, clientfile.Same,
			`{"mcpServers": {"pgfsm": {"u\u0072l" : "http:\/\/127.0.0.1:8787/mcp"}}}`},
		{"another", `{"mcpServers": {"a": {}, "pgfsm": {"command": "old"}, "b": {}}}`, clientfile.Replaced, `{"mcpServers":{"a":{},` + entry + `,"b":{}}}`},
		{"name-in-another-place", `{"pgfsm": 1, "mcpServers": {"a": {"pgfsm": 2}}}`, clientfile.Added, `{"pgfsm":1,"mcpServers":{` + entry + `,"a":{"pgfsm":2}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, change, err := set(t, c.was)
			if err != nil || change != c.change {
				t.Fatalf("Set() = %s, %v, want %s", change, err, c.change)
			}
			want := jsontext.Value(c.want)
			if change != clientfile.Same {
				check.NoError(t, want.Indent(jsontext.WithIndent("  ")))
				want = append(want, '\n')
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if again, change, err := set(t, string(got)); err != nil || change != clientfile.Same {
				t.Errorf("once more: %s, %v, want that it is there already\n%s", change, err, again)
			}
		})
	}
}

// TestSetRefuses shows that a file that is not one strict JSON object is refused, and that the error quotes nothing of it.
func TestSetRefuses(t *testing.T) {
	for _, c := range []struct{ name, was, want string }{
		{"not-json", "{\n \"sk-live\": sk-live }", "line 2: this is not JSON"},
		{"comment", "{\n // sk-live\n}", "line 2: this is not JSON"},
		{"duplicate-name", "{\"mcpServers\": {},\n \"mcpServers\": {}}", "line 2: a name is there twice"},
		{"text-behind", "{} {}", "text behind"},
		{"list", `["sk-live"]`, "not a JSON object"},
		{"servers-are-a-list", "{\n  \"mcpServers\": [\"sk-live\"]}", `"mcpServers" is not an object`},
		{"not-utf-8", "{\"a\": \"\xff\"}", "line 1: this is not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := set(t, c.was)
			if err == nil {
				t.Fatalf("Set accepted it: %s", got)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sk-live") {
				t.Errorf("Set() = %q, want %q and nothing of the file", err, c.want)
			}
		})
	}
}

// TestWriteKeepsEverything shows that the former content is in a new file, whatever files have the names of backups already.
func TestWriteKeepsEverything(t *testing.T) {
	path, f := file(t, "{}", 0o640)
	check.NoError(t, os.Symlink("elsewhere", path+".bak"))
	check.NoError(t, os.WriteFile(path+".bak.2", []byte("of another program"), 0o600))
	backup, err := f.Write([]byte("new"))
	if err != nil || backup != path+".bak.3" {
		t.Fatalf("Write() = %q, %v, want the third name", backup, err)
	}
	for name, want := range map[string]string{path: "new", path + ".bak.2": "of another program", path + ".bak.3": "{}"} { // in any order
		if got, err := os.ReadFile(name); string(got) != want || err != nil {
			t.Errorf("%s holds %q, %v, want %q", filepath.Base(name), got, err, want)
		}
	}
	for _, name := range []string{path, backup} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the mode of %s is %v, %v, want 0640", filepath.Base(name), info.Mode(), err)
		}
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "elsewhere")); err == nil {
		t.Error("the backup was written through a symbolic link")
	}
}

// TestWriteOfAChangedFile shows that a change by another program stays, and that no backup is left.
func TestWriteOfAChangedFile(t *testing.T) {
	path, f := file(t, "{}", 0o600)
	check.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
	if _, err := f.Write([]byte("new")); err == nil || !strings.Contains(err.Error(), "no longer what was read") {
		t.Errorf("Write() = %v, want an error", err)
	}
	if got, err := os.ReadFile(path); string(got) != "other" || err != nil {
		t.Errorf("the file holds %q, %v, want what the other program wrote", got, err)
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
