package e2e

import (
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

// TestLedgerCopy moves a ledger with a held, an approved and an ended call. Everything goes on in the copy, and nothing in the source.
func TestLedgerCopy(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	h.do("ledger", "key", "new", "-o", in("log.key")).Want(t, exitYes)
	h.do("resume", "--json", h.decided("approve")).Want(t, exitYes)
	approved := h.decided("approve")
	waiting, binding := h.held()
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)

	target := "sqlite:" + in("new.db")
	hanging := h.started("tools/call", "resume", approved)
	h.do("ledger", "copy", h.ledger, target).Expect(t, exitCould, "live processes use the ledger", approved)
	kill(t, hanging)
	h.hangs.Store("")
	h.do("ledger", "copy", h.ledger, h.ledger).Expect(t, exitCould, "the target is not empty")
	h.do("ledger", "copy", "sqlite:"+in("none.db"), target).Expect(t, exitCould, "there is no ledger")
	h.do("ledger", "copy", "sqlite:", target).Expect(t, exitCould, "names no file")
	for _, url := range []string{"postgre://me:se-cret@db.example", "postgres:me:se-cret@db.example", "postgres://me:/se-cret@db.example/x?sslmode=require"} {
		if got := h.do("ledger", "copy", h.ledger, url); strings.Contains(got.Stdout+got.Stderr, "se-cret") {
			t.Errorf("the password is repeated: %s%s", got.Stdout, got.Stderr)
		}
	}
	for range 2 {
		h.do("ledger", "copy", h.ledger, target, "--json").Want(t, exitYes, "/target", "sqlite:new.db")
	}
	for _, args := range [][]string{
		{"call", "puppet", "look", "{}"}, {"resume"}, {"serve"}, {"approvals", "serve"}, {"token", "create", "--name", "eve", "--role", "agent"},
		{"ledger", "key", "new", "-o", in("other.key")}, {"ledger", "prune", "--before", "2001-01-01"}, {"ledger", "rebuild"},
		{"ledger", "copy", h.ledger, "sqlite:" + in("third.db")},
	} {
		h.do(args...).Expect(t, exitCould, "the ledger is closed since", "it goes on in sqlite:new.db")
	}
	h.do("ledger", "verify", "--checkpoint", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)

	h.renamed("sqlite:pgfsm.db", "sqlite:new.db")
	h.do("ledger", "verify", "--deep", "--checkpoint", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "rebuild", "--check").Want(t, exitYes)
	h.do("resume", "--json", approved).Want(t, exitCould, "/code", "indeterminate") // it was in flight when its process was killed
	h.byDora("approvals", "approve", waiting, "--digest", binding, "--reason", "as decided").Want(t, exitYes)
	h.do("resume", "--json", waiting).Want(t, exitYes, "/effect", "done")
	h.made(3)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "verify", "--deep", "--checkpoint", in("checkpoint")).Want(t, exitYes)
}

// TestCopyBesideServe shows that a gateway without a run prevents a copy, too, and that a gateway ends when its ledger is closed.
func TestCopyBesideServe(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "")
	s := serve(t, h.dir)
	copied := func() clitest.Result {
		return h.do("ledger", "copy", h.ledger, "sqlite:"+filepath.Join(h.dir, "new.db"))
	}
	copied().Expect(t, exitCould, "live processes use the ledger: the gateway ")
	if err := os.RemoveAll(filepath.Join(h.dir, "pgfsm.db.owners")); err != nil { // as if the gateway were on another machine
		t.Fatal(err)
	}
	copied().Expect(t, exitYes, "The log goes on in sqlite:new.db, with")
	got := s.agent("/mcp", "").call("puppet__look", "{}")
	if got.code() != "record_failed" || !strings.Contains(string(got.Raw), "the ledger is closed") {
		t.Errorf("a call after the copy: %s", got.Raw)
	}
	h.made(0)
	soon(t, "the gateway says so", func() bool {
		return strings.Contains(s.stderr.String(), "the service has ended: the ledger is closed since")
	})
	s.stop(t, exitCould)
}

// TestContinueAfterLoss puts an older copy of a ledger back. No command writes to it, and a new log begins.
func TestContinueAfterLoss(t *testing.T) {
	t.Parallel()
	h, vkey := signing(t)
	older := t.TempDir()
	copyLedger(t, h.dir, older)
	for range 3 {
		h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	}
	s := serve(t, h.dir)
	lost := h.checkpointed(s)
	s.stop(t, exitYes)
	h.do("ledger", "continue-after-loss", "sqlite:"+filepath.Join(h.dir, "new.db")).Expect(t, exitCould, "nothing was lost")
	copyLedger(t, older, h.dir)
	for _, args := range [][]string{{"serve"}, {"call", "puppet", "look", "{}"}, {"resume"}, {"token", "create", "--name", "eve", "--role", "agent"}} {
		h.do(args...).Expect(t, exitCould, "the log's history was changed", "an older copy was put back", "pgfsm ledger continue-after-loss")
	}
	h.do("ledger", "verify", "--checkpoint", lost).Expect(t, exitNo, "the last ones were removed")

	target := "sqlite:" + filepath.Join(h.dir, "new.db")
	h.do("ledger", "continue-after-loss", target, "--origin", "example.com/log").Expect(t, exitCould, "the new log needs another one")
	h.do("ledger", "continue-after-loss", target, "--origin", "example.com/log-2", "--checkpoint", lost).Expect(t, exitYes, "A new log begins in sqlite:new.db")
	h.do("ledger", "verify").Expect(t, exitYes, "origin example.com/log\n")
	h.do("serve").Expect(t, exitCould, "the ledger is closed since", "sqlite:new.db")
	h.do("ledger", "verify", "--ledger", target).Expect(t, exitYes, "origin example.com/log-2\n", "size 1\n")
	h.do("ledger", "export", "--ledger", target).Expect(t, exitYes, `"former":{"lost":"example.com/log\n`, strings.Split(vkey, "+")[0])

	h.renamed("sqlite:pgfsm.db", "sqlite:new.db")
	h.renamed("origin: example.com/log", "origin: example.com/log-2")
	h.do("call", "puppet", "look", "{}").Expect(t, exitCould, "it is the log example.com/log-2, and the checkpoint is of the log example.com/log")
	check.NoError(t, os.Rename(filepath.Dir(lost), filepath.Dir(lost)+".former"))
	h.renamed("log.key", "log-2.key")
	h.do("ledger", "key", "new", "-o", filepath.Join(h.dir, "log-2.key")).Want(t, exitYes)
	s = serve(t, h.dir)
	h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", h.checkpointed(s)).Want(t, exitYes)
	s.stop(t, exitYes)
}
