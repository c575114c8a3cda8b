package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// TestServeFailuresOfProcessesInUse: the one process that may run has a call under way.
func TestServeFailuresOfProcessesInUse(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	begun, leave := filepath.Join(files, "begun"), filepath.Join(files, "leave")
	waits := strings.Replace(honestScript, "*tools/call*)", fmt.Sprintf("*tools/call*) : > %s; while [ ! -e %s ]; do sleep 0.05; done;", begun, leave), 1)
	s := serve(t, clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nallowlist: allowlist.json\nserve: {record: none}\nlimits: {server_sessions: 1}\n"+
		"servers:\n  busy: {type: stdio, command: /bin/sh, args: [-c, %q]}\n  free: {type: stdio, command: /bin/sh, args: [-c, %q]}\n", waits, honestScript),
		"allowlist.json", `{"busy": ["look"], "free": ["look"]}`))
	free, busy := s.agent("/servers/free/mcp", ""), s.agent("/servers/busy/mcp", "")
	free.gets(t, "look", `{}`, "hi")
	said := make(chan answered, 1)
	go func() { said <- busy.call("look", `{}`) }()
	soon(t, "the call is under way", func() bool { _, err := os.Stat(begun); return err == nil })
	free.gets(t, "look", `{}`, "too_many_sessions")
	for _, path := range []string{"/servers/free/mcp", "/mcp"} {
		_, body := s.agent(path, "").post(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		if got := string(body); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, `"code":"too_many_sessions"`) {
			t.Errorf("tools/list at %s = %s, want an error that says so", path, got)
		}
	}
	resp, err := http.Get(s.admin + "/readyz")
	check.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(body), `"server_sessions_scarce"`) {
		t.Errorf("/readyz = %s, want the warning", body)
	}
	check.NoError(t, os.WriteFile(leave, nil, 0o600))
	if got := <-said; got.code() != "hi" {
		t.Errorf("the call that was under way: %s", got.Raw)
	}
	free.gets(t, "look", `{}`, "hi")
}
