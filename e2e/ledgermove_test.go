package e2e

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// renamed changes a text in the house's configuration.
func (h *house) renamed(old, replacement string) {
	h.t.Helper()
	text := clitest.Read(h.t, h.config)
	if !strings.Contains(text, old) {
		h.t.Fatalf("the configuration lacks %q", old)
	}
	clitest.Write(h.t, h.config, strings.Replace(text, old, replacement, 1))
}

// TestLedgerMove moves a ledger with a held, an approved and an ended call, to PostgreSQL if the tests run with it. Everything goes on in the
// new ledger, and nothing in the old one.
func TestLedgerMove(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	made := h.do("ledger", "key", "new", "-o", in("log.key"))
	made.Want(t, exitYes)
	vkey := strings.TrimSpace(made.Stdout)
	h.do("resume", "--json", h.decided("approve")).Want(t, exitYes)
	approved := h.decided("approve")
	waiting, binding := h.held()
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)

	target := strings.Replace(newLedger(t), "sqlite:pgfsm.db", "sqlite:"+in("new.db"), 1)
	hanging := h.started("tools/call", "resume", approved)
	h.do("ledger", "close", "--to", target).Expect(t, exitCould, "live processes use the ledger", approved)
	kill(t, hanging)
	h.hangs.Store("")
	h.do("ledger", "close", "--to", "sqlite:").Expect(t, exitCould, "names no file")
	for _, url := range []string{"postgre://me:se-cret@db.example", "postgres:me:se-cret@db.example", "postgres://me:/se-cret@db.example/x?sslmode=require"} {
		if got := h.do("ledger", "close", "--to", url); strings.Contains(got.Stdout+got.Stderr, "se-cret") {
			t.Errorf("the password is repeated: %s%s", got.Stdout, got.Stderr)
		}
	}
	clitest.Write(t, in("log.jsonl"), h.do("ledger", "export").Stdout)
	h.do("ledger", "import", "--ledger", target, in("log.jsonl")).Expect(t, exitCould, "does not end with ledger.closed", "pgfsm ledger close")
	const name = "postgres://db.example.com/pgfsm"
	h.do("ledger", "close", "--to", "postgres://me:se-cret@db.example.com/pgfsm?sslmode=verify-full", "--json").Want(t, exitYes, "/target", name)
	for _, args := range [][]string{
		{"call", "puppet", "look", "{}"}, {"resume"}, {"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
		{"approvals", "serve", "--admin", "127.0.0.1:0"}, {"token", "create", "--name", "eve", "--role", "agent"},
		{"ledger", "key", "new", "-o", in("other.key")}, {"ledger", "prune", "--before", "2001-01-01"}, {"ledger", "rebuild"},
		{"ledger", "close", "--to", target},
	} {
		h.do(args...).Expect(t, exitCould, "the ledger is closed since", "it goes on in "+name)
	}
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey).Want(t, exitYes)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)

	export := h.do("ledger", "export").Stdout
	clitest.Write(t, in("log.jsonl"), export)
	clitest.Write(t, in("half.jsonl"), export[:len(export)/2])
	h.do("ledger", "import", "--ledger", target, in("half.jsonl")).Expect(t, exitCould, "the export was cut off")
	h.killedImport(target, export[:len(export)/2])
	h.do("ledger", "import", "--ledger", target, in("log.jsonl")).Expect(t, exitYes, "The log goes on here, with ")
	h.do("ledger", "import", "--ledger", target, in("log.jsonl")).Expect(t, exitCould, "the ledger is not empty")

	h.renamed("sqlite:pgfsm.db", target)
	h.do("ledger", "verify", "--deep", "--checkpoint", in("checkpoint"), "--key", vkey).Want(t, exitYes)
	h.do("ledger", "rebuild", "--check").Want(t, exitYes)
	h.do("resume", "--json", approved).Want(t, exitCould, "/code", "indeterminate") // it was in flight when its process was killed
	h.byDora("approvals", "approve", waiting, "--digest", binding, "--reason", "as decided").Want(t, exitYes)
	h.do("resume", "--json", waiting).Want(t, exitYes, "/effect", "done")
	h.made(3)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "verify", "--deep", "--checkpoint", in("checkpoint"), "--key", vkey).Want(t, exitYes)
}

// killedImport kills an import that has read a part of its export.
func (h *house) killedImport(target, part string) {
	h.t.Helper()
	cmd, _, _ := child(h.t.Context(), "pgfsm", nil, "ledger", "import", "--ledger", target)
	in, out, err := os.Pipe()
	check.NoError(h.t, err)
	defer out.Close()
	cmd.Stdin = in
	check.NoError(h.t, cmd.Start())
	check.NoError(h.t, in.Close())
	// The last byte fits into the pipe only after the import has read what was before.
	_, err = io.Copy(out, bytes.NewReader(append([]byte(part), bytes.Repeat([]byte(" "), 1<<20)...)))
	check.NoError(h.t, err)
	kill(h.t, cmd)
}

// TestCloseBesideServe shows that a gateway without a run prevents the close, too, and that a gateway ends when its ledger is closed.
func TestCloseBesideServe(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "")
	s := serve(t, h.dir)
	closed := func() clitest.Result { return h.do("ledger", "close", "--to", "sqlite:new.db") }
	closed().Expect(t, exitCould, "live processes use the ledger: the gateway ")
	if err := os.RemoveAll(filepath.Join(h.dir, "pgfsm.db.owners")); err != nil { // as if the gateway were on another machine
		t.Fatal(err)
	}
	closed().Expect(t, exitYes, "its log goes on in sqlite:new.db")
	got := s.agent("/mcp", "").call("puppet__look", "{}")
	if got.code() != "record_failed" || !strings.Contains(string(got.Raw), "the ledger is closed") {
		t.Errorf("a call after the close: %s", got.Raw)
	}
	h.made(0)
	soon(t, "the gateway says so", func() bool {
		return strings.Contains(s.stderr.String(), "the service has ended: the ledger is closed since")
	})
	s.stop(t, exitCould)
}

// TestLossOfEntries puts an older copy of a ledger back. No command writes to it, and a new ledger begins as docs/operate/backup.md says.
func TestLossOfEntries(t *testing.T) {
	t.Parallel()
	h, _ := signing(t)
	older := t.TempDir()
	copyLedger(t, h.dir, older)
	for range 3 {
		h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	}
	s := serve(t, h.dir)
	lost := h.checkpointed(s)
	s.stop(t, exitYes)
	copyLedger(t, older, h.dir)
	for _, args := range [][]string{{"serve"}, {"call", "puppet", "look", "{}"}, {"resume"}, {"token", "create", "--name", "eve", "--role", "agent"}} {
		h.do(args...).Expect(t, exitCould, "the log's history was changed", "an older copy was put back", "docs/operate/backup.md#after-a-loss")
	}
	h.do("ledger", "verify", "--checkpoint", lost).Expect(t, exitNo, "the last ones were removed")

	h.renamed("sqlite:pgfsm.db", "sqlite:new.db")
	h.renamed("origin: example.com/log", "origin: example.com/log-2")
	h.renamed("log.key", "log-2.key")
	check.NoError(t, os.Rename(filepath.Dir(lost), filepath.Dir(lost)+".former"))
	made := h.do("ledger", "key", "new", "-o", filepath.Join(h.dir, "log-2.key"))
	made.Expect(t, exitYes, "example.com/log-2+")
	s = serve(t, h.dir)
	h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", h.checkpointed(s), "--key", strings.TrimSpace(made.Stdout)).Want(t, exitYes)
	s.stop(t, exitYes)
}
