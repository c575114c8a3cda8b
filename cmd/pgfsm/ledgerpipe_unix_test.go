//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
)

// TestCheckpointThatIsAPipe: nobody waits for what is written to it.
func TestCheckpointThatIsAPipe(t *testing.T) {
	t.Parallel()
	at := "sqlite:" + tokenLedger(t)
	path := filepath.Join(t.TempDir(), "checkpoint")
	check.NoError(t, syscall.Mkfifo(path, 0o600))
	for _, path := range []string{path, filepath.Dir(path)} {
		r := command(t.Context(), nil, "ledger", "verify", "--ledger", at, "--checkpoint", path)
		r.Want(t, exitCould)
		if !strings.Contains(r.Stderr, "not a regular file") || !strings.Contains(r.Stderr, "give -") {
			t.Errorf("stderr = %q, want it to say what the file is", r.Stderr)
		}
	}
}
