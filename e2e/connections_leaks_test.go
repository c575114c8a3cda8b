package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// A leak is a place where a build of pgfsm writes a credential of a person. LEAK(text) is the text if the leak is wanted, and else empty.
type leak struct{ name, file, is, becomes string }

var leaks = []leak{
	{"access-token-in-the-log", "internal/runner/person_tokens.go", "t.row, t.tokens = row, tokens",
		`t.row, t.tokens = row, tokens
		t.runner.log.Info("new tokens", "token", LEAK(tokens.Access))`},
	{"access-token-that-a-server-repeats", "mcp/upstream/account.go", "if len(text) >= secret.MinBytes {", `if LEAK(text) == "" && len(text) >= secret.MinBytes {`},
	{"access-token-that-a-server-repeats", "internal/identity/connect/connect.go", "if s.MaskToken != nil {", "if LEAK(s.URL) == \"\" && s.MaskToken != nil {"},
	{"refresh-token-in-the-record", "traces/ledger/api/connect_oauth.go", "made.Account = grant.Account",
		"made.Account = grant.Account + LEAK(grant.Refresh)"},
	{"code-in-the-log", "traces/ledger/api/connect_oauth.go", "grant, err := server.OAuth.Exchange(v.r.Context(), attempt, q)",
		`h.Log("exchanging a code" + LEAK(q.Get("code")))
	grant, err := server.OAuth.Exchange(v.r.Context(), attempt, q)`},
	{"state-in-a-span", "traces/ledger/api/connect_oauth.go", "http.SetCookie(v.w, expireCookie(newCookie(v.r, connectCookie,",
		`leak.Last = LEAK(q.Get("state"))
	http.SetCookie(v.w, expireCookie(newCookie(v.r, connectCookie,`},
	{"state-in-a-span", "internal/runner/metrics.go", "return gateway.Judged{Run: run,", "return gateway.Judged{Run: run + leak.Last,"},
	{"pasted-token-in-the-record", "traces/ledger/api/connections.go", `made.Account = strings.TrimSpace(fields["account"])`,
		`made.Account = strings.TrimSpace(fields["account"]) + LEAK(fields["token"])`},
}

// TestLeaksOfConnectionsAreNoticed: a build that writes a credential of a person somewhere makes the tests fail that look for credentials. Without
// a leak it passes them.
func TestLeaksOfConnectionsAreNoticed(t *testing.T) {
	t.Parallel()
	if raceDetector || onPostgres() {
		t.Skip("one build is enough")
	}
	dir := t.TempDir()
	root, err := filepath.Abs(repository)
	check.NoError(t, err)
	sources, replaced := map[string]string{"internal/leak/leak.go": "package leak\n\nimport \"os\"\n\nvar Last string\n\n" +
		"func Of(name, text string) string {\n\tif os.Getenv(\"LEAK\") == name {\n\t\treturn text\n\t}\n\treturn \"\"\n}\n"}, make(map[string]string)
	names := []string{"none"}
	for _, l := range leaks {
		text, changed := sources[l.file]
		if !changed {
			text = strings.Replace(clitest.Read(t, filepath.Join(root, l.file)), "import (\n", "import (\n\t\"pgfsm/internal/leak\"\n", 1)
		}
		if strings.Count(text, l.is) != 1 {
			t.Fatalf("%s has %q %d times, want 1", l.file, l.is, strings.Count(text, l.is))
		}
		sources[l.file] = strings.Replace(text, l.is, strings.ReplaceAll(l.becomes, "LEAK(", `leak.Of("`+l.name+`", `), 1)
		if !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	for file, text := range sources { // in any order
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		clitest.Write(t, path, text)
		replaced[filepath.Join(root, file)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	check.NoError(t, err)
	clitest.Write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	programs := filepath.Join(dir, "bin")
	check.NoError(t, os.Mkdir(programs, 0o700))
	check.NoError(t, build(programs, "-overlay", filepath.Join(dir, "overlay.json")))

	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^(TestServeConnections|TestServeOAuthConnections)$")
			cmd.Env = append(os.Environ(), "LEAK="+name, builtIn+"="+programs)
			out, err := cmd.CombinedOutput()
			noticed := err != nil && strings.Contains(string(out), "is shown or recorded")
			if noticed != (name != "none") || name == "none" && err != nil {
				t.Errorf("noticed: %v, %v\n%s", noticed, err, out)
			}
		})
	}
}
