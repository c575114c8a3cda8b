package clientfile_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/clientfile"
	"pgfsm/internal/test/check"
)

// TestPath shows where each client has its file, by system.
func TestPath(t *testing.T) {
	for _, c := range []struct {
		name, client, system string
		env                  map[string]string
		want                 string // empty: an error
	}{
		{"claude-on-macos", "claude", "darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-on-linux", "claude", "linux", map[string]string{"HOME": "/h"}, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-with-xdg", "claude", "linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"},
		{"claude-on-windows", "claude", "windows", map[string]string{"APPDATA": "/a", "HOME": "/h"}, "/a/Claude/claude_desktop_config.json"},
		{"claude-nowhere", "claude", "darwin", nil, ""},
		{"cursor", "cursor", "linux", map[string]string{"HOME": "/h"}, "/h/.cursor/mcp.json"},
		{"cursor-on-windows", "cursor", "windows", map[string]string{"USERPROFILE": "/u"}, "/u/.cursor/mcp.json"},
		{"vscode", "vscode", "linux", nil, ".vscode/mcp.json"},
		{"gemini", "gemini", "darwin", map[string]string{"HOME": "/h"}, "/h/.gemini/settings.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := clientfile.Find(c.client)
			check.NoError(t, err)
			got, err := client.Path(c.system, func(name string) string { return c.env[name] })
			if (err == nil) != (c.want != "") || err == nil && filepath.ToSlash(got) != c.want {
				t.Errorf("Path() = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestEntry shows how each client writes a server. A token is never in it.
func TestEntry(t *testing.T) {
	http := clientfile.Target{URL: "http://127.0.0.1:8787/mcp"}
	stdio := clientfile.Target{Command: "/bin/pgfsm", Args: []string{"serve", "--stdio", "-c", "/etc/pgfsm.yaml"}}
	with := func(to clientfile.Target) clientfile.Target {
		to.Token, to.TokenVariable = "AGENT", "PGFSM_TOKEN"
		return to
	}
	const command = `"command":"/bin/pgfsm","args":["serve","--stdio","-c","/etc/pgfsm.yaml"]`
	for _, c := range []struct {
		name, client, file string
		to                 clientfile.Target
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
		{"gemini", "gemini", "settings.json", with(http), `{"httpUrl":"http://127.0.0.1:8787/mcp","headers":{"Authorization":"Bearer ${AGENT}"}}`},
		{"windsurf", "windsurf", "mcp.json", with(http), `{"serverUrl":"http://127.0.0.1:8787/mcp","headers":{"Authorization":"Bearer ${env:AGENT}"}}`},
		{"zed", "zed", "settings.json", http, `{"url":"http://127.0.0.1:8787/mcp"}`},
		{"zed-token", "zed", "settings.json", with(http), ""},
		{"codex", "codex", "config.toml", with(http), `{"url":"http://127.0.0.1:8787/mcp","bearer_token_env_var":"AGENT"}`},
		{"codex-stdio", "codex", "config.toml", stdio, `{` + command + `}`},
		{"codex-stdio-with-another-variable", "codex", "config.toml", with(stdio), ""},
		{"path-that-is-not-utf-8", "cursor", "mcp.json", clientfile.Target{Command: "/\xff"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := clientfile.Find(c.client)
			check.NoError(t, err)
			got, err := client.Entry(c.file, c.to)
			if (err == nil) != (c.want != "") {
				t.Fatalf("Entry() = %s, %v, want %q", got, err, c.want)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesOfCodex: the entry is a table of TOML.
func TestLinesOfCodex(t *testing.T) {
	client, err := clientfile.Find("codex")
	check.NoError(t, err)
	entry, err := client.Entry("config.toml", clientfile.Target{Command: `C:\pgfsm`, Args: []string{"serve", `a"b`}})
	check.NoError(t, err)
	want := "[mcp_servers.\"pgfsm-a.b\"]\ncommand = \"C:\\\\pgfsm\"\nargs = [\"serve\",\"a\\\"b\"]\n"
	if diff := cmp.Diff(want, client.Lines("pgfsm-a.b", entry)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
