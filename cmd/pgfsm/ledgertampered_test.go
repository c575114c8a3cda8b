package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/traces/ledger/sqlite/sqlitetest"

	_ "modernc.org/sqlite"
)

// tokenLedger makes a ledger with a token in it.
func tokenLedger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	command(t.Context(), nil, "token", "create", "--ledger", "sqlite:"+path, "--role", "agent", "--name", "bot").Want(t, cli.ExitYes)
	return path
}

// TestVerifyFindsWhatIsNoRow: an index can lie, too.
func TestVerifyFindsWhatIsNoRow(t *testing.T) {
	t.Parallel()
	path := tokenLedger(t)
	sqlitetest.EmptyIndex(t, path, "entries_type")
	r := command(t.Context(), nil, "ledger", "verify", "--ledger", "sqlite:"+path)
	r.Want(t, cli.ExitNo)
	if !strings.Contains(r.Stdout, "file integrity: ") {
		t.Errorf("stdout %q, want the file's integrity", r.Stdout)
	}
}

// TestTokenListShowsWhatIsThere: whoever can write the file can write anything into it.
func TestTokenListShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	path := tokenLedger(t)
	sqlitetest.Exec(t, path, "UPDATE tokens SET id = 'i' || char(0x1b), role = 'r' || char(0x9b), expires = '2' || char(0x202e), name = 'n' || char(0x2028)")
	r := command(t.Context(), nil, "token", "list", "--ledger", "sqlite:"+path)
	r.Want(t, cli.ExitYes)
	for _, want := range []string{`i\u001b`, `r\u009b`, `2\u202e`, `n\u2028`} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("stdout %q, want %s", r.Stdout, want)
		}
	}
	if strings.ContainsAny(r.Stdout, "\x1b\u009b\u202e\u2028") {
		t.Errorf("stdout %q, want nothing that moves what is read", r.Stdout)
	}
}

func TestLedgerRebuild(t *testing.T) {
	t.Parallel()
	path := tokenLedger(t)
	at := "sqlite:" + path
	command(t.Context(), nil, "ledger", "rebuild", "--check", "--ledger", at, "--json").Want(t, cli.ExitYes, "/rebuilt", "false")
	sqlitetest.Exec(t, path, "UPDATE tokens SET name = 'mallory'")
	r := command(t.Context(), nil, "ledger", "rebuild", "--check", "--ledger", at)
	r.Want(t, cli.ExitNo)
	if !strings.Contains(r.Stdout, `"mallory", should be "bot"`) || !strings.Contains(r.Stdout, "1 row differs") {
		t.Errorf("stdout = %q", r.Stdout)
	}
	command(t.Context(), nil, "ledger", "verify", "--ledger", at).Want(t, cli.ExitNo)
	command(t.Context(), nil, "ledger", "rebuild", "--ledger", at, "--json").Want(t, cli.ExitYes, "/rebuilt", "true", "/different/0/table", "tokens")
	command(t.Context(), nil, "ledger", "verify", "--ledger", at).Want(t, cli.ExitYes)
}
