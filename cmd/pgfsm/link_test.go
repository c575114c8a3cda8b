package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/config"
	"pgfsm/mcp/gateway"
)

// TestLinkPlaces: where each client keeps its file, by system.
func TestLinkPlaces(t *testing.T) {
	for _, c := range []struct {
		name, client, system string
		env                  map[string]string
		want                 string // empty: it cannot be told
	}{
		{"claude-on-macos", "claude", "darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-on-linux", "claude", "linux", map[string]string{"HOME": "/h"}, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-with-xdg", "claude", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"},
		{"claude-with-relative-xdg", "claude", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-on-windows", "claude", "windows", map[string]string{"APPDATA": "/a", "HOME": "/h"}, "/a/Claude/claude_desktop_config.json"},
		{"claude-nowhere", "claude", "darwin", nil, ""},
		{"claude-nowhere-on-windows", "claude", "windows", map[string]string{"HOME": "/h"}, ""},
		{"cursor", "cursor", "linux", map[string]string{"HOME": "/h"}, "/h/.cursor/mcp.json"},
		{"cursor-on-windows", "cursor", "windows", map[string]string{"USERPROFILE": "/u"}, "/u/.cursor/mcp.json"},
		{"cursor-nowhere", "cursor", "linux", nil, ""},
		{"vscode", "vscode", "linux", nil, ".vscode/mcp.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := findLinkClient(c.client)
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.where(c.system, func(name string) string { return c.env[name] })
			if (err == nil) != (c.want != "") || err == nil && filepath.ToSlash(got) != c.want {
				t.Errorf("where() = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestLinkEntries: what each client is told, in its own words; a token is never in it.
func TestLinkEntries(t *testing.T) {
	http := linkTarget{http: true, url: "http://127.0.0.1:8787/mcp"}
	stdio := linkTarget{command: "/bin/pgfsm", args: []string{"serve", "--stdio", "-c", "/etc/pgfsm.yaml"}}
	with := func(to linkTarget) linkTarget { to.variable = "AGENT"; return to }
	const command = `"command":"/bin/pgfsm","args":["serve","--stdio","-c","/etc/pgfsm.yaml"]`
	for _, c := range []struct {
		name, client, file string
		to                 linkTarget
		want               string // empty: refused
	}{
		{"claude-desktop", "claude", "x/claude_desktop_config.json", stdio, `{` + command + `}`},
		{"claude-desktop-http", "claude", "x/claude_desktop_config.json", http, ""},
		{"claude-desktop-token", "claude", "x/Claude_Desktop_Config.json", with(stdio), ""},
		{"claude-code", "claude", ".mcp.json", with(stdio), `{` + command + `,"env":{"PGFSM_TOKEN":"${AGENT}"}}`},
		{"claude-code-http", "claude", ".mcp.json", with(http),
			`{"type":"http","url":"http://127.0.0.1:8787/mcp","headers":{"Authorization":"Bearer ${AGENT}"}}`},
		{"cursor", "cursor", "mcp.json", with(http), `{"url":"http://127.0.0.1:8787/mcp","headers":{"Authorization":"Bearer ${env:AGENT}"}}`},
		{"cursor-stdio", "cursor", "mcp.json", with(stdio), `{` + command + `,"env":{"PGFSM_TOKEN":"${env:AGENT}"}}`},
		{"vscode", "vscode", "mcp.json", http, `{"type":"http","url":"http://127.0.0.1:8787/mcp"}`},
		{"vscode-stdio", "vscode", "mcp.json", with(stdio), `{"type":"stdio",` + command + `,"env":{"PGFSM_TOKEN":"${env:AGENT}"}}`},
		{"path-that-is-not-utf-8", "cursor", "mcp.json", linkTarget{command: "/\xff"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := findLinkClient(c.client)
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.entry(c.file, c.to)
			if (err == nil) != (c.want != "") {
				t.Fatalf("entry() = %s, %v, want %q", got, err, c.want)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinkNamesNoExecutableOfGoRun(t *testing.T) {
	for path, want := range map[string]bool{ // in any order
		"/tmp/go-build123/b001/exe/pgfsm": true, "/usr/local/bin/pgfsm": false, "/home/u/go/bin/pgfsm": false,
	} {
		if got := builtForOnce(path); got != want {
			t.Errorf("builtForOnce(%s) = %t, want %t", path, got, want)
		}
	}
}

// TestExposeWordsAgree: the configuration takes the words that the gateway knows, and has the gateway's default.
func TestExposeWordsAgree(t *testing.T) {
	if diff := cmp.Diff(gateway.ExposeWords(), append(config.Exposable(), config.ExposeAll)); diff != "" {
		t.Errorf("words (-gateway +configuration):\n%s", diff)
	}
	dir := t.TempDir()
	doc := "version: 1\nservers: {a: {command: x}, b: {command: x, expose: all}, c: {command: x, expose: []}}\nallowlist: a.json\n"
	for name, text := range map[string]string{"c.yaml": doc, "a.json": "{}"} { // in any order
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := config.Load(filepath.Join(dir, "c.yaml"), ours, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	var got []gateway.Expose
	for _, e := range loaded.Serve.Expose {
		set, err := gateway.ParseExpose(e.Words)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, set)
	}
	all, err := gateway.ParseExpose([]string{config.ExposeAll})
	if diff := cmp.Diff([]gateway.Expose{gateway.DefaultExpose, all, 0}, got); diff != "" || err != nil {
		t.Errorf("sets (-want +got), %v:\n%s", err, diff)
	}
}

// linkHere makes a file of a client and reads it.
func linkHere(t *testing.T, text string, mode os.FileMode) (string, *linkFile) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	f, err := readLinkFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, f
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLinkBackup: nothing that was there is lost, whatever has the names of backups already.
func TestLinkBackup(t *testing.T) {
	path, f := linkHere(t, "{}", 0o640)
	elsewhere := filepath.Join(filepath.Dir(path), "elsewhere")
	if err := os.Symlink(elsewhere, path+".bak"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".bak.2", []byte("somebody else's"), 0o600); err != nil {
		t.Fatal(err)
	}
	backup, err := f.replace([]byte("new"))
	if err != nil || backup != path+".bak.3" {
		t.Fatalf("replace() = %q, %v, want the third name", backup, err)
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("the backup was written through a symbolic link")
	}
	for name, want := range map[string]string{path: "new", path + ".bak.2": "somebody else's", path + ".bak.3": "{}"} { // in any order
		if got := content(t, name); got != want {
			t.Errorf("%s holds %q, want %q", filepath.Base(name), got, want)
		}
	}
	for _, name := range []string{path, path + ".bak.3"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the mode of %s is %v, %v, want 0640", filepath.Base(name), info.Mode(), err)
		}
	}
	again := &linkFile{path: path, text: []byte("{}"), mode: 0o640}
	if name, made, err := again.backUp(); err != nil || made || name != path+".bak.3" {
		t.Errorf("backUp() of what is kept already = %q, %t, %v", name, made, err)
	}
}

func TestLinkBackupsAreBounded(t *testing.T) {
	path, f := linkHere(t, "old", 0o600)
	for n := range maxBackups - 1 {
		other := &linkFile{path: path, text: []byte{byte('A' + n%26), byte('A' + n/26)}, mode: 0o600}
		if _, made, err := other.backUp(); err != nil || !made {
			t.Fatalf("backup %d: %t, %v", n+1, made, err)
		}
	}
	if _, made, err := f.backUp(); err != nil || !made {
		t.Fatalf("backup %d: %t, %v, want one", maxBackups, made, err)
	}
	if _, err := (&linkFile{path: path, text: []byte("older"), mode: 0o600}).replace([]byte("new")); err == nil || content(t, path) != "old" {
		t.Errorf("replace() with every name taken = %v, and the file holds %q; want it left alone", err, content(t, path))
	}
}

// TestLinkFileThatChanges: what somebody else writes between reading and writing is not overwritten.
func TestLinkFileThatChanges(t *testing.T) {
	path, f := linkHere(t, "{}", 0o600)
	if err := os.WriteFile(path, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.replace([]byte("new")); err == nil || !strings.Contains(err.Error(), "no longer what was read") {
		t.Errorf("replace() = %v, want a refusal", err)
	}
	if got := content(t, path); got != `{"a": 1}` {
		t.Errorf("the file holds %q, want what somebody else wrote", got)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	fresh, err := readLinkFile(filepath.Join(filepath.Dir(path), "new", "mcp.json"))
	if err != nil || fresh.text != nil {
		t.Fatalf("readLinkFile() = %+v, %v, want no file", fresh, err)
	}
	if err := os.MkdirAll(filepath.Dir(fresh.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fresh.path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.replace([]byte("new")); err == nil || content(t, fresh.path) != "x" {
		t.Errorf("replace() of a file that came into being = %v, it holds %q", err, content(t, fresh.path))
	}
}
