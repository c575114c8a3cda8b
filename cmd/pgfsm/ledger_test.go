package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// long is a time that has passed.
func long() time.Time { return time.Date(2001, 1, 2, 3, 4, 5, 0, time.UTC) }

// auditorOfLongAgo makes a token in the ledger of a file, as another process did long ago, and returns the ledger for --ledger.
func auditorOfLongAgo(t *testing.T, path, name string) string {
	t.Helper()
	store, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), store, ledger.Options{Clock: long})
	if err == nil {
		_, _, err = l.CreateToken(t.Context(), ledger.Local("local:root"), name, ledger.RoleAuditor, "")
		err = errors.Join(err, l.Close())
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

func TestLedgerPrunePrintsWhatWasRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	auditorOfLongAgo(t, path, "older@example.com")
	at := auditorOfLongAgo(t, path, "old@example.com")
	command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-02").want(t, exitYes)
	r := command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-03")
	r.want(t, exitYes)
	if !strings.Contains(r.stdout, "2 events of 0 runs from before 2001-01-03T00:00:00Z removed\n") || !strings.Contains(r.stdout, "take a new one") {
		t.Errorf("stdout = %s", r.stdout)
	}
	command(t.Context(), nil, "ledger", "verify", "--ledger", at, "--json").want(t, exitYes, "/events", "1", "/pruned", "2", "/tokens", "2")
	command(t.Context(), nil, "ledger", "prune", "--ledger", at, "--before", "2001-01-03", "--json").want(t, exitYes, "/events", "0")
}

func TestLedgerPrintedPrune(t *testing.T) {
	for _, c := range []struct {
		name string
		done ledger.Pruned
		want string
	}{
		{"nothing", ledger.Pruned{}, "0 events of 0 runs from before T removed\n"},
		{"behind-an-open-run", ledger.Pruned{Kept: 3, Behind: "r\x1b"},
			"0 events of 0 runs from before T removed\n3 older events stay: they follow the beginning of the run r\\u001b, which has not ended\n"},
		{"behind-one-that-ended-later", ledger.Pruned{Kept: 3, Behind: "r", Ends: "E"},
			"0 events of 0 runs from before T removed\n3 older events stay: they follow the beginning of the run r, which ended at E\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printPruned(world{stdout: &out}, "T", &c.done); err != nil || out.String() != c.want {
				t.Errorf("printPruned() = %q, %v, want %q", out.String(), err, c.want)
			}
		})
	}
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
	if !lines.Scan() || !strings.Contains(lines.Text(), "older@example.com") {
		t.Fatalf("the first line is %q", lines.Text())
	}
	auditorOfLongAgo(t, path, "newer@example.com")
	if !lines.Scan() || !strings.Contains(lines.Text(), "newer@example.com") {
		t.Fatalf("the second line is %q, %v", lines.Text(), lines.Err())
	}
	cancel()
	if lines.Scan() {
		t.Errorf("a third line: %q", lines.Text())
	}
	if got := <-code; got != exitYes {
		t.Errorf("exit code = %d", got)
	}
}
