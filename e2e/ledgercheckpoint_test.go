package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// copyLedger puts a copy of a folder's ledger into another folder.
func copyLedger(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"pgfsm.db", "pgfsm.db-wal", "pgfsm.db-shm"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(filepath.Join(to, name))
		}
		check.NoError(t, err)
	}
}

// TestCheckpoints takes a log from its first key to a cosigned checkpoint, and then puts an older copy back.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	called := func() string {
		r := h.do("call", "--json", "puppet", "look", "{}")
		r.Want(t, exitYes)
		return r.Member("/run_id")
	}
	called()
	h.do("ledger", "checkpoint").Expect(t, exitCould, "log.key: no such file")
	r := h.do("ledger", "key", "new", "-o", in("log.key"))
	r.Want(t, exitYes)
	vkey := strings.TrimSpace(r.Stdout)
	h.do("ledger", "key", "new", "-o", in("log.key")).Expect(t, exitCould, "file exists")
	h.do("ledger", "key", "list", "--json").Want(t, exitYes, "/keys/0/key", vkey, "/keys/1/key", "")
	called()

	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", in("checkpoint")).Expect(t, exitCould, "Nothing shows that it is complete", "signatures of the checkpoint were not verified")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--json").Want(t, exitCould, "/complete", "false", "/checkpoint/verified", "false")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey, "--json").Want(t, exitYes, "/checkpoint/verified", "true")
	h.do("ledger", "verify", "--key", vkey).Expect(t, exitCould, "name it with --checkpoint")

	service := witnesstest.New(t)
	submit := func() clitest.Result {
		return h.do("ledger", "witness", service.URL, "--witness-key", service.Key, "--checkpoint", in("checkpoint"))
	}
	submit().Expect(t, exitCould, "does not know the log")
	service.Trust(t, vkey)
	trusting := []string{"--checkpoint", in("checkpoint"), "--key", vkey, "--witness-key", service.Key}
	h.do(append([]string{"ledger", "verify"}, trusting...)...).Expect(t, exitNo, "has not cosigned it")
	submit().Want(t, exitYes)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes) // the log has not grown, so the cosignature stays
	h.do(append([]string{"ledger", "verify"}, trusting...)...).Expect(t, exitYes, "signed by pgfsm-log-", "cosigned by witness.example/w1+")
	h.do(append([]string{"ledger", "verify", "--max-age", "1h"}, trusting...)...).Want(t, exitYes)
	h.do(append([]string{"ledger", "verify", "--max-age", "1ns"}, trusting...)...).Expect(t, exitNo, "ask for a newer checkpoint")
	h.do("ledger", "verify", "--max-age", "1h", "--checkpoint", in("checkpoint"), "--key", vkey).Expect(t, exitCould, "--max-age needs --witness-key")

	clitest.Write(t, in("log.jsonl"), h.do("ledger", "export").Stdout)
	h.do(append([]string{"ledger", "verify-export", in("log.jsonl"), "--deep"}, trusting...)...).Expect(t, exitYes, "Complete up to the checkpoint")
	clitest.Write(t, in("changed.jsonl"), strings.Replace(clitest.Read(t, in("log.jsonl")), `"look"`, `"book"`, 1))
	h.do("ledger", "verify-export", in("changed.jsonl")).Expect(t, exitNo, "export its lines: line ")
	h.do("ledger", "verify-export", in("none.jsonl")).Expect(t, exitCould, "none.jsonl: no such file")

	h.do("ledger", "prove", "01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d").Expect(t, exitCould, "the ledger has no run")

	old := t.TempDir()
	copyLedger(t, h.dir, old)
	later := called()
	h.do("ledger", "prove", later, "--checkpoint", in("checkpoint")).Expect(t, exitCould, "does not cover")
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Want(t, exitYes)
	submit().Want(t, exitYes)
	copyLedger(t, old, h.dir)
	h.do("ledger", "verify").Expect(t, exitYes, "Completeness is unproven")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey).Expect(t, exitNo, "the last ones were removed")
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).Expect(t, exitNo, "log_inconsistent: ", "an older copy was put back")
	submit().Expect(t, exitNo, "log_inconsistent: ")
	called()
	h.do("ledger", "witness", service.URL, "--witness-key", service.Key, "--json").Want(t, exitNo, "/code", "log_inconsistent")
}

// TestCheckpointByAnotherUser: the owner of the log's key has no access to the ledger. They sign what the gateway tells, as long as the
// log only grows.
func TestCheckpointByAnotherUser(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "checkpoints: {origin: example.com/log}\n")
	owner := t.TempDir()
	key, signed := filepath.Join(owner, "log.key"), filepath.Join(owner, "checkpoint")
	r := h.do("ledger", "key", "new", "--origin", "example.com/log", "-o", key)
	r.Want(t, exitYes)
	vkey := strings.TrimSpace(r.Stdout)
	h.do("ledger", "key", "new", "--origin", "example.com/ log", "-o", filepath.Join(owner, "other.key")).Expect(t, exitCould, "--origin: ")
	h.do("ledger", "key", "add", vkey).Want(t, exitYes)
	h.do("ledger", "key", "add", vkey).Expect(t, exitCould, "was added before")

	auditor := makeToken(t, h.config, ledger.RoleAuditor, "olga@example.com")
	s := serve(t, h.dir)
	sign := func(token string) clitest.Result {
		return command(t.Context(), map[string]string{tokenVariable: token}, "ledger", "checkpoint", "--url", s.admin, "--key", key, "-o", signed)
	}
	sign("").Expect(t, exitCould, "PGFSM_TOKEN is not set")
	sign(auditor).Want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", signed, "--key", vkey).Expect(t, exitYes, "Complete up to the checkpoint")
	first := filepath.Join(owner, "first")
	clitest.Write(t, first, clitest.Read(t, signed))

	h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	sign(auditor).Want(t, exitYes)
	growth := filepath.Join(owner, "growth")
	h.do("ledger", "prove", "--consistency", first, signed, "-o", growth).Want(t, exitYes)
	command(t.Context(), nil, "verify-consistency", first, growth, "--key", vkey).Expect(t, exitYes, "the log example.com/log contains the")
	command(t.Context(), nil, "verify-consistency", signed, growth, "--key", vkey).Expect(t, exitNo, "proof_invalid: the proof is of", "record-format.md, R49")
	clitest.Write(t, growth, strings.Replace(clitest.Read(t, growth), "old ", "old 1", 1))
	command(t.Context(), nil, "verify-consistency", first, growth, "--key", vkey).Expect(t, exitNo, "record-format.md, R49")
	h.do("ledger", "prove", "--consistency", signed, first).Expect(t, exitNo, "log_inconsistent: ")

	// Another log, under the same origin, is not signed.
	s.stop(t, exitYes)
	check.NoError(t, os.Remove(filepath.Join(h.dir, "pgfsm.db")))
	h.do("ledger", "key", "add", vkey).Want(t, exitYes)
	auditor = makeToken(t, h.config, ledger.RoleAuditor, "olga@example.com")
	for range 5 {
		h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	}
	s = serve(t, h.dir)
	before := clitest.Read(t, signed)
	sign(auditor).Expect(t, exitNo, "log_inconsistent: ")
	if clitest.Read(t, signed) != before {
		t.Error("the checkpoint of the owner was changed")
	}
}

// signing is a house whose gateway writes checkpoints every second.
func signing(t *testing.T) (h *house, vkey string) {
	t.Helper()
	h = newHouse(t, openPolicy, "checkpoints: {key: log.key, dir: out/checkpoints, every: 1s, origin: example.com/log}\n")
	h.do("serve").Expect(t, exitCould, "log.key: no such file")
	r := h.do("ledger", "key", "new", "-o", filepath.Join(h.dir, "log.key"))
	r.Expect(t, exitYes, "example.com/log+")
	return h, strings.TrimSpace(r.Stdout)
}

// checkpointed waits for the checkpoint of the whole log, and returns its path.
func (h *house) checkpointed(s *served) (path string) {
	h.t.Helper()
	path = filepath.Join(h.dir, "out", "checkpoints", "checkpoint-"+h.do("ledger", "verify", "--json").Member("/size"))
	soon(h.t, "the checkpoint is written", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	return path
}

// TestServeWritesCheckpoints shows that the gateway writes a checkpoint when the log has grown.
func TestServeWritesCheckpoints(t *testing.T) {
	t.Parallel()
	h, vkey := signing(t)
	s := serve(t, h.dir)
	first := h.checkpointed(s)
	h.do("call", "puppet", "look", "{}").Want(t, exitYes)
	second := h.checkpointed(s)
	s.stop(t, exitYes)
	for _, path := range []string{first, second} {
		h.do("ledger", "verify", "--checkpoint", path, "--key", vkey).Want(t, exitYes)
	}
	clitest.Write(t, h.config, strings.Replace(clitest.Read(t, h.config), "example.com/log", "example.com/other", 1))
	h.do("serve").Expect(t, exitCould, "the log was made with the name example.com/log, and checkpoints.origin is example.com/other")
	h.do("ledger", "verify").Want(t, exitYes) // reading needs no name
}
