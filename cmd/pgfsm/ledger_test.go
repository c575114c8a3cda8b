package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// long is a time that has passed.
func long() time.Time { return time.Date(2001, 1, 2, 3, 4, 5, 0, time.UTC) }

// auditorOfLongAgo makes a token in the ledger of a file, as another process did long ago, and returns the ledger for --ledger.
func auditorOfLongAgo(t *testing.T, path, name string) string {
	t.Helper()
	store, err := sqlite.Open(path)
	check.NoError(t, err)
	l, err := ledger.Open(t.Context(), store, ledger.Options{Clock: long})
	if err == nil {
		_, _, err = l.CreateToken(t.Context(), ledger.LocalUser("local:root"), name, ledger.RoleAuditor, "")
		err = errors.Join(err, l.Close())
	}
	check.NoError(t, errors.Join(err, store.Close()))
	return "sqlite:" + path
}

// runsOfLongAgo makes a run that ended and one that is held.
func runsOfLongAgo(t *testing.T, path string) {
	t.Helper()
	store, err := sqlite.Open(path)
	check.NoError(t, err)
	clock := ledgertest.NewClock(t)
	clock.Set(t, long().Format(policy.TimeForm))
	f := ledgertest.Open(t, store, clock)
	f.Ask("local:carol", statestest.Content())
	f.HoldBy("local:carol", ledgertest.Holding(1))
	check.NoError(t, f.Close())
}

// TestLedgerPrune: what is left is verified against a checkpoint from before.
func TestLedgerPrune(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	at := auditorOfLongAgo(t, path, "old@example.com")
	runsOfLongAgo(t, path)
	command(t.Context(), nil, "ledger", "verify", "--ledger", at, "--json").Want(t, cli.ExitYes, "/entries", "7", "/size", "7", "/requests", "2")
	earlier, key := filepath.Join(t.TempDir(), "checkpoint"), filepath.Join(t.TempDir(), "key")
	made := command(t.Context(), nil, "ledger", "key", "new", "--ledger", at, "-o", key)
	made.Want(t, cli.ExitYes)
	vkey := strings.TrimSpace(made.Stdout)
	command(t.Context(), nil, "ledger", "checkpoint", "--ledger", at, "--key", key, "-o", earlier).Want(t, cli.ExitYes)

	r := command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-02", "--key", key, "--unstated")
	r.Want(t, cli.ExitYes)
	if want := "0 entries of 0 runs from before 2001-01-02T00:00:00.000Z removed\n"; r.Stdout != want {
		t.Errorf("stdout = %q, want %q", r.Stdout, want)
	}
	r = command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-03", "--key", key, "--unstated")
	r.Want(t, cli.ExitYes)
	if want := "2 entries of 1 run from before 2001-01-03T00:00:00.000Z removed\nNot removed, because they had not ended by then: 1 run\n"; r.Stdout != want {
		t.Errorf("stdout = %q, want %q", r.Stdout, want)
	}
	command(t.Context(), nil, "ledger", "verify", "--ledger", at, "--json", "--checkpoint", earlier, "--key", vkey).Want(t, cli.ExitYes,
		"/ok", "true", "/complete", "true", "/entries", "7", "/pruned", "2", "/size", "9", "/requests", "1", "/tokens", "1")
	r = command(t.Context(), nil, "ledger", "verify", "--ledger", at)
	r.Want(t, cli.ExitYes)
	if !regexp.MustCompile(`(?m)^2 entries were pruned; their headers are in the tree\n  pruned by local:\S+ at \S+Z: entries 3 to 4 \(1 run from before 2001-01-03T00:00:00.000Z; ordered by a key of the log; no retention was stated\)$`).MatchString(r.Stdout) {
		t.Errorf("stdout = %q, want who pruned which entries, and when", r.Stdout)
	}
	r = command(t.Context(), nil, "ledger", "verify", "--ledger", at, "--checkpoint", earlier, "--key", vkey)
	r.Want(t, cli.ExitYes)
	if want := "Pruned after the checkpoint, so that nobody can show their bodies any more: entries 3 to 4\n"; !strings.Contains(r.Stdout, want) {
		t.Errorf("stdout = %q, want %q", r.Stdout, want)
	}
	command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-03", "--key", key, "--unstated", "--json").Want(t, cli.ExitYes, "/entries", "0", "/runs", "0", "/kept", "1")
}

// TestLedgerTailFollows waits for an event that comes while it looks, and ends when it is told to.
func TestLedgerTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	at := auditorOfLongAgo(t, path, "older@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		c := run(ctx, []string{"ledger", "tail", "--follow", "--ledger", at}, world{
			stdin: strings.NewReader(""), stdout: out, stderr: io.Discard, getenv: func(string) (string, bool) { return "", false },
		})
		out.CloseWithError(io.EOF)
		code <- c
	}()
	lines := bufio.NewScanner(in)
	for _, want := range []string{"log.created", "older@example.com"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("a line is %q, want %q", lines.Text(), want)
		}
	}
	auditorOfLongAgo(t, path, "newer@example.com")
	if !lines.Scan() || !strings.Contains(lines.Text(), "newer@example.com") {
		t.Fatalf("the third line is %q, %v", lines.Text(), lines.Err())
	}
	cancel()
	if lines.Scan() {
		t.Errorf("a fourth line: %q", lines.Text())
	}
	if got := <-code; got != cli.ExitYes {
		t.Errorf("exit code = %d", got)
	}
}
