//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestLedgerCopyToPostgres moves a ledger to PostgreSQL, decides there about a held call, and moves the ledger back.
func TestLedgerCopyToPostgres(t *testing.T) {
	t.Parallel()
	onPostgres(t)
	c := cluster.Cluster(t)
	if err := c.Exec(t.Context(), "postgres", "CREATE DATABASE copied"); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, heldPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	h.do("ledger", "key", "new", "-o", in("log.key")).want(t, exitYes)
	waiting, binding := h.held()
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes)

	target := strings.Replace(c.URL(pgtest.Superuser, "copied"), "@", ":hunter2@", 1) + "&lease=1s"
	name := "postgres://" + c.Address() + "/copied"
	h.do("ledger", "copy", h.ledger, target).says(t, exitCould, "pgfsm ledger init")
	h.do("ledger", "init", "--ledger", target).want(t, exitYes)
	h.do("ledger", "copy", h.ledger, target).says(t, exitYes, "The log goes on in "+name)
	for _, r := range []ran{h.do("call", "puppet", "look", "{}"), h.do("ledger", "export")} {
		if all := r.stdout + r.stderr; !strings.Contains(all, name) || strings.Contains(all, "hunter2") {
			t.Errorf("want the name of the target without its password: %s", all)
		}
	}

	h.renamed("sqlite:pgfsm.db", target)
	h.do("ledger", "verify", "--checkpoint", in("checkpoint")).want(t, exitYes)
	h.do("ledger", "rebuild", "--check").want(t, exitYes)
	h.byDora("approvals", "approve", waiting, "--digest", binding, "--reason", "as decided").want(t, exitYes)
	h.do("resume", "--json", waiting).want(t, exitYes, "/effect", "done")
	h.made(1)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes)
	h.do("ledger", "copy", target, "sqlite:"+in("back.db")).want(t, exitYes)
	h.do("ledger", "verify", "--deep", "--ledger", "sqlite:"+in("back.db"), "--checkpoint", in("checkpoint")).want(t, exitYes)
}
