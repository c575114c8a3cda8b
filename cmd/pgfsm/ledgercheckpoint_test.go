package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// says holds a command to its exit code and to words on its two streams.
func (r ran) says(t *testing.T, code int, words ...string) {
	t.Helper()
	r.want(t, code)
	for _, w := range words {
		if !strings.Contains(r.stdout+r.stderr, w) {
			t.Errorf("output lacks %q\nstdout: %s\nstderr: %s", w, r.stdout, r.stderr)
		}
	}
}

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
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckpoints takes a log from its first key to a cosigned checkpoint, and then puts an older copy back.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	called := func() string {
		r := h.do("call", "--json", "puppet", "look", "{}")
		r.want(t, exitYes)
		return r.member("/run_id")
	}
	called()
	h.do("ledger", "checkpoint").says(t, exitCould, "log.key: no such file")
	r := h.do("ledger", "key", "new", "-o", in("log.key"))
	r.want(t, exitYes)
	vkey := strings.TrimSpace(r.stdout)
	h.do("ledger", "key", "new", "-o", in("log.key")).says(t, exitCould, "file exists")
	h.do("ledger", "key", "list", "--json").want(t, exitYes, "/keys/0/key", vkey, "/keys/1/key", "")
	called()

	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", in("checkpoint")).says(t, exitYes, "signatures of the checkpoint were not verified")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--json").want(t, exitYes, "/complete", "true", "/checkpoint/verified", "false")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey, "--json").want(t, exitYes, "/checkpoint/verified", "true")
	h.do("ledger", "verify", "--key", vkey).says(t, exitCould, "name it with --checkpoint")

	service := witnesstest.New(t)
	submit := func() ran {
		return h.do("ledger", "witness", service.URL, "--witness-key", service.Key, "--checkpoint", in("checkpoint"))
	}
	submit().says(t, exitCould, "does not know the log")
	service.Trust(t, vkey)
	trusting := []string{"--checkpoint", in("checkpoint"), "--key", vkey, "--witness-key", service.Key}
	h.do(append([]string{"ledger", "verify"}, trusting...)...).says(t, exitNo, "has not cosigned it")
	submit().want(t, exitYes)
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes) // the log has not grown, so the cosignature stays
	h.do(append([]string{"ledger", "verify"}, trusting...)...).says(t, exitYes, "signed by pgfsm-log-", "cosigned by witness.example/w1+")

	h.do("ledger", "prove", "01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d").says(t, exitCould, "the ledger has no run")

	old := t.TempDir()
	copyLedger(t, h.dir, old)
	later := called()
	h.do("ledger", "prove", later, "--checkpoint", in("checkpoint")).says(t, exitCould, "does not cover")
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes)
	submit().want(t, exitYes)
	copyLedger(t, old, h.dir)
	h.do("ledger", "verify").says(t, exitYes, "Completeness is unproven")
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey).says(t, exitNo, "the last ones were removed")
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).says(t, exitNo, "log_inconsistent: ", "an older copy was put back")
	submit().says(t, exitNo, "log_inconsistent: ")
	called()
	h.do("ledger", "witness", service.URL, "--witness-key", service.Key, "--json").want(t, exitNo, "/code", "log_inconsistent")
}

// TestKeyRotation shows that both keys sign for a while, and that a removed key signs no more.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "checkpoints: {key: [old.key, new.key]}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	var vkeys []string
	for _, name := range []string{"old.key", "new.key"} {
		r := h.do("ledger", "key", "new", "-o", in(name))
		r.want(t, exitYes)
		vkeys = append(vkeys, strings.TrimSpace(r.stdout))
	}
	h.do("ledger", "checkpoint", "-o", in("checkpoint")).want(t, exitYes)
	for _, vkey := range vkeys {
		h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkey).want(t, exitYes)
	}
	h.do("ledger", "key", "remove", vkeys[0], "--json").want(t, exitYes, "/key", vkeys[0])
	h.do("ledger", "key", "remove", vkeys[0]).says(t, exitCould, "was removed before")
	h.do("ledger", "checkpoint").says(t, exitCould, "old.key is no key of this log, or was removed")
	h.do("ledger", "checkpoint", "--key", in("new.key")).want(t, exitYes)
	h.do("ledger", "verify", "--checkpoint", in("checkpoint"), "--key", vkeys[0]).want(t, exitYes) // what it signed stays valid
	h.do("ledger", "verify").want(t, exitYes)
}

// signing is a house whose gateway writes checkpoints every second.
func signing(t *testing.T) (h *house, vkey string) {
	t.Helper()
	h = newHouse(t, openPolicy, "checkpoints: {key: log.key, dir: out/checkpoints, every: 1s, origin: example.com/log}\n")
	h.do("serve").says(t, exitCould, "log.key: no such file")
	r := h.do("ledger", "key", "new", "-o", filepath.Join(h.dir, "log.key"))
	r.says(t, exitYes, "example.com/log+")
	return h, strings.TrimSpace(r.stdout)
}

// until waits until something is so, for a minute at most.
func (s *served) until(t *testing.T, so func() bool) {
	t.Helper()
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ledger.Poll(within, 20*time.Millisecond, func() (bool, error) { return so(), nil }); err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
}

// checkpointed waits for the checkpoint of the whole log, and returns its path.
func (h *house) checkpointed(s *served) (path string) {
	h.t.Helper()
	path = filepath.Join(h.dir, "out", "checkpoints", "checkpoint-"+h.do("ledger", "verify", "--json").member("/size"))
	s.until(h.t, func() bool {
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
	h.do("call", "puppet", "look", "{}").want(t, exitYes)
	second := h.checkpointed(s)
	s.stop(t, exitYes)
	for _, path := range []string{first, second} {
		h.do("ledger", "verify", "--checkpoint", path, "--key", vkey).want(t, exitYes)
	}
	write(t, h.config, strings.Replace(textOf(t, h.config), "example.com/log", "example.com/other", 1))
	h.do("serve").says(t, exitCould, "the log was made with the name example.com/log, and checkpoints.origin is example.com/other")
	h.do("ledger", "verify").want(t, exitYes) // reading needs no name
}
