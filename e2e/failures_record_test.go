package e2e

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger/sqlite/sqlitetest"
)

// TestServeFailuresOfTheRecord: what cannot be recorded is not called, the agent is told that nothing was sent, and monitors
// that the gateway is not ready. When the record can be kept again, everything goes on without a restart.
func TestServeFailuresOfTheRecord(t *testing.T) {
	t.Parallel()
	const inLedger = "ledger: \"sqlite:pgfsm.db\"\n"
	for _, tt := range []struct {
		name, more string
		breaks     func(t *testing.T, s *served, dir string) (mends func())
		says       string // the agent is told
	}{
		{"ledger-locked", inLedger, lockLedger, "end the program that holds it"},
		{"ledger-moved-away", inLedger, moveLedger, "moved or replaced"},
		{"ledger-moved-away-and-denials-opaque", inLedger + "serve: {denials: opaque}\n", moveLedger, "The gateway cannot record this call now."},
		{"disk-full", inLedger, fillDisk, ""},
		{"traces-folder-replaced", "", spoilTraces, "traces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))
			dir := gatewayFolder(t, u, tt.more)
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			if got := a.call("echo__look", `{"n":0}`); got.code() != "hi" {
				t.Fatalf("before: %s", got.Raw)
			}
			before := u.Calls.Load()
			mends := tt.breaks(t, s, dir)
			got := a.call("echo__look", `{"n":1}`)
			got.wants(t, "record_failed", "not_sent", "later")
			if reason := got.Result.Meta.Decision.Reason; !strings.Contains(reason, tt.says) {
				t.Errorf("the reason is %q, want it to say %q", reason, tt.says)
			} else if strings.Contains(tt.more, "opaque") && strings.Contains(reason, "pgfsm.db") {
				t.Errorf("the agent learns the ledger's place: %q", reason)
			}
			u.Reached(t, before)
			if got := s.health(t, "/readyz"); got != http.StatusServiceUnavailable {
				t.Errorf("readyz = %d, want 503", got)
			}
			if got := s.health(t, "/healthz"); got != http.StatusOK {
				t.Errorf("healthz = %d, want 200", got)
			}
			mends()
			if got := a.until(t, "echo__look", `{"n":2}`, "record_failed"); got.code() != "hi" {
				t.Errorf("it is over: %s\n%s", got.Raw, s.stderr)
			}
			soon(t, "ready again", func() bool { return s.health(t, "/readyz") == http.StatusOK })
			s.stop(t, exitYes)
			if strings.Contains(tt.more, "ledger") {
				verifies(t, dir)
				for _, q := range recorded(t, dir) {
					if q.Ended == "" {
						t.Errorf("left is %+v", q)
					}
				}
			}
		})
	}
}

// lockLedger is another program that writes, and does not come to an end.
func lockLedger(t *testing.T, _ *served, dir string) func() {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "pgfsm.db")+"?_pragma=busy_timeout(60000)") // the gateway may be writing
	check.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// moveLedger is somebody who tidies up.
func moveLedger(t *testing.T, _ *served, dir string) func() {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be moved here")
	}
	at := filepath.Join(dir, "pgfsm.db")
	check.NoError(t, os.Rename(at, at+".away"))
	return func() {
		if err := os.Rename(at+".away", at); err != nil {
			t.Error(err)
		}
	}
}

// spoilTraces puts a file in the place of the folder.
func spoilTraces(t *testing.T, _ *served, dir string) func() {
	t.Helper()
	at := filepath.Join(dir, "traces")
	check.NoError(t, os.Rename(at, at+".away"))
	check.NoError(t, os.WriteFile(at, nil, 0o600))
	return func() {
		if err := os.Remove(at); err != nil {
			t.Error(err)
		}
		if err := os.Rename(at+".away", at); err != nil {
			t.Error(err)
		}
	}
}

// TestServeFailuresOfTheLedgerAtStart: a ledger that cannot be opened for writing keeps the gateway from starting. It
// listens nowhere and asks no server.
func TestServeFailuresOfTheLedgerAtStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, at string)
		says  string
	}{
		{"not-a-ledger", func(t *testing.T, at string) {
			clitest.Write(t, at, strings.Repeat("once upon a time ", 1000))
		}, "pgfsm.db"},
		{"a-token-was-changed", func(t *testing.T, at string) {
			command(t.Context(), nil, "token", "create", "--ledger", "sqlite:"+at, "--role", "agent", "--name", "ci").Want(t, exitYes)
			sqlitetest.Exec(t, at, "UPDATE tokens SET role = 'approver'")
		}, "its role (\"approver\", should be \"agent\") is not what its events say; keep the file, see what pgfsm ledger verify says"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Honest)
			dir := gatewayFolder(t, u, "ledger: \"sqlite:pgfsm.db\"\n")
			tt.spoil(t, filepath.Join(dir, "pgfsm.db"))
			refusesToServe(t, u, dir, "127.0.0.1:0", "127.0.0.1:0", tt.says)
		})
	}
}

// TestServeFailuresOfNothingRecorded: who wants no record gets none, and is told so.
func TestServeFailuresOfNothingRecorded(t *testing.T) {
	t.Parallel()
	u := mcptest.New(t, mcptest.Honest)
	dir := gatewayFolder(t, u, "serve: {record: none}\n")
	s := serve(t, dir)
	s.agent("/mcp", "").gets(t, "echo__look", `{}`, "hi")
	s.stop(t, exitYes, "nothing is recorded: serve.record is none")
	if _, err := os.Stat(filepath.Join(dir, "traces")); !os.IsNotExist(err) {
		t.Errorf("there are traces: %v", err)
	}
}
