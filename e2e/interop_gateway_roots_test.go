package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestRootsAreNotTheClients: server-filesystem takes the roots of its client for the folders that it may show, in place
// of those that the operator gave it. Through the gateway they stay the operator's, unless the operator lets roots pass:
// then the same client reads what it likes, which shows that the test would see it.
func TestRootsAreNotTheClients(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	for _, c := range []struct{ name, expose, script, mode, shows string }{
		{"default-sdk-v1", "", "sdk-v1", "http", "ROOT"},
		{"default-sdk-v2", "", "sdk-v2", "legacy", "ROOT"},
		{"default-sdk-v2-stateless", "", "sdk-v2", "auto", "ROOT"},
		{"everything-but-roots", ", sessions: session, expose: [tools, progress, cancellation, logging, resources, prompts, completion, sampling, " +
			"elicitation, input_required]", "sdk-v1", "http", "ROOT"},
		{"roots-exposed-sdk-v1", ", sessions: session, expose: [tools, roots]", "sdk-v1", "http", "/etc"},
		{"roots-exposed-sdk-v2", ", sessions: session, expose: [tools, roots]", "sdk-v2", "legacy", "/etc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := cli.Folder(t, "boiler.txt", boiler)
			journal := filepath.Join(t.TempDir(), "journal")
			config := fmt.Sprintf("version: 1\nallowlist: allowlist.json\nservers:\n  filesystem: %s\n",
				in.scribed(t, journal, "filesystem", c.expose, root))
			g := serve(t, cli.Folder(t, "pgfsm.yaml", config, "allowlist.json", `{"filesystem": ["list_allowed_directories", "read_text_file"]}`))
			shows := strings.ReplaceAll(c.shows, "ROOT", root)
			// The server asks for the roots when it likes. Its answer to the first call tells that it can be called; by the
			// time that it would show another folder it has asked.
			list := clientCall{Name: "list_allowed_directories", Arguments: jsontext.Value(`{}`), Until: shows}
			read := func(path string) clientCall {
				return clientCall{Name: "read_text_file", Arguments: jsontext.Value(object("path", path))}
			}
			report := in.drive(t, c.script, c.mode, clientOrder{
				URL: g.base + "/servers/filesystem/mcp", Roots: []string{"file:///etc"},
				Calls: []clientCall{list, read("/etc/passwd"), read(filepath.Join(root, "boiler.txt")), list},
			})
			g.stop(t, exitYes)
			for i, want := range []string{shows, "", "", shows} {
				if got := report.Answers[i]; want != "" && (got.IsError || !strings.Contains(got.Text, want)) {
					t.Errorf("answer %d = %+v, want the folder %s", i, got, want)
				}
			}
			passwd, file := report.Answers[1], report.Answers[2]
			if opened := c.shows == "/etc"; (strings.Contains(passwd.Text, "root:") && !passwd.IsError) != opened || file.IsError != opened {
				t.Errorf("/etc/passwd = %+v, the operator's file = %+v, want only one: the client's %t", passwd, file, opened)
			}
			said, err := os.ReadFile(journal)
			if told := strings.Contains(string(said), `"roots"`); err != nil || told != (c.shows == "/etc") {
				t.Errorf("the server was told of roots: %t, %v\n%s", told, err, said)
			}
		})
	}
}
