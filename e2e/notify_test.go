package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// TestServeNotifiesSystemd: a service tells systemd that it serves, and that it stops.
func TestServeNotifiesSystemd(t *testing.T) {
	t.Run("gateway", func(t *testing.T) { notifies(t, "serve", "--listen", "127.0.0.1:0") })
	t.Run("approvals", func(t *testing.T) { notifies(t, "approvals", "serve") })
}

func notifies(t *testing.T, command ...string) {
	t.Helper()
	short, err := os.MkdirTemp("", "notify") // a socket's path has at most 107 bytes
	check.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	path := filepath.Join(short, "socket")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	check.NoError(t, err)
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	s := start(t, clitest.Folder(t, "pgfsm.yaml", "version: 1\nservers: {down: {type: http, url: \"http://127.0.0.1:9/mcp\"}}\n"+
		"allowlist: allowlist.json\nledger: sqlite:pgfsm.db\n", "allowlist.json", `{"down": ["look"]}`), command...)
	receives := func(want string) {
		t.Helper()
		check.NoError(t, systemd.SetReadDeadline(time.Now().Add(time.Minute)))
		message := make([]byte, 100)
		n, err := systemd.Read(message)
		if err != nil || string(message[:n]) != want {
			t.Fatalf("systemd received %q, %v, want %q\n%s", message[:n], err, want, s.stderr)
		}
	}
	receives("READY=1")
	answer, err := http.Get(s.admin + "/healthz")
	check.NoError(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %d after READY=1, want 200", answer.StatusCode)
	}
	s.interrupt(t)
	receives("STOPPING=1")
	s.ends(t, 0)
}
