package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestLedgerCopyToPostgres moves a ledger to PostgreSQL, decides there about a held call, and moves the ledger back.
func TestLedgerCopyToPostgres(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	c := cluster.Cluster(t)
	check.NoError(t, c.Exec(t.Context(), "postgres", "CREATE DATABASE copied"))
	h := newHouse(t, heldPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	h.do("ledger", "key", "new", "-o", in("log.key")).Want(t, exitYes)
	waiting, binding := h.held()
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)

	target := strings.Replace(c.URL(pgtest.Superuser, "copied"), "@", ":hunter2@", 1) + "&lease=1s"
	name := "postgres://" + c.Address() + "/copied"
	h.do("ledger", "copy", h.ledger, target).Expect(t, exitCould, "pgfsm ledger init")
	h.do("ledger", "init", "--ledger", target).Want(t, exitYes)
	h.do("ledger", "copy", h.ledger, target).Expect(t, exitYes, "The log goes on in "+name)
	for _, r := range []clitest.Result{h.do("call", "puppet", "look", "{}"), h.do("ledger", "export")} {
		if all := r.Stdout + r.Stderr; !strings.Contains(all, name) || strings.Contains(all, "hunter2") {
			t.Errorf("want the name of the target without its password: %s", all)
		}
	}

	h.renamed("sqlite:pgfsm.db", target)
	h.do("ledger", "verify", "--checkpoint", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "rebuild", "--check").Want(t, exitYes)
	h.byDora("approvals", "approve", waiting, "--digest", binding, "--reason", "as decided").Want(t, exitYes)
	h.do("resume", "--json", waiting).Want(t, exitYes, "/effect", "done")
	h.made(1)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "copy", target, "sqlite:"+in("back.db")).Want(t, exitYes)
	h.do("ledger", "verify", "--deep", "--ledger", "sqlite:"+in("back.db"), "--checkpoint", in("checkpoint")).Want(t, exitYes)
}
