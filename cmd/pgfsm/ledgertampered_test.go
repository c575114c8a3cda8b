package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// tokenLedger makes a ledger with a token in it.
func tokenLedger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	command(t.Context(), nil, "token", "create", "--ledger", "sqlite:"+path, "--role", "agent", "--name", "bot").want(t, exitYes)
	return path
}

// tampered does something to a file as any program can.
func tampered(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// emptyIndex takes all entries out of an index whose root is a leaf.
func emptyIndex(t *testing.T, path, index string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root, size int64
	const where = "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?"
	if err := db.QueryRow(where, index).Scan(&root, &size); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// An empty leaf of an index: https://www.sqlite.org/fileformat2.html#b_tree_pages.
	page := make([]byte, size)
	page[0], page[5], page[6] = 0x0a, byte(size>>8), byte(size)
	copy(content[(root-1)*size:], page)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyFindsWhatIsNoRow: the schema and the indexes can lie, too.
func TestVerifyFindsWhatIsNoRow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		tamper     func(t *testing.T, path string)
		table, key string
		opens      bool
	}{
		{"trigger-too-many", func(t *testing.T, path string) {
			tampered(t, path, "CREATE TRIGGER z BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END")
		}, "sqlite_schema", "trigger z", false},
		{"trigger-missing", func(t *testing.T, path string) { tampered(t, path, "DROP TRIGGER events_refuse_update") },
			"sqlite_schema", "trigger events_refuse_update", false},
		{"guard-open", func(t *testing.T, path string) { tampered(t, path, "INSERT INTO pruning VALUES (1)") }, "pruning", "a row", false},
		{"index-without-rows", func(t *testing.T, path string) { emptyIndex(t, path, "events_run") }, "file", "integrity", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := tokenLedger(t)
			at := "sqlite:" + path
			command(t.Context(), nil, "ledger", "verify", "--ledger", at).want(t, exitYes)
			tc.tamper(t, path)
			r := command(t.Context(), nil, "ledger", "verify", "--ledger", at)
			r.want(t, exitNo)
			if !strings.Contains(r.stdout, tc.table+" "+tc.key+": ") {
				t.Errorf("stdout %q, want %s %s", r.stdout, tc.table, tc.key)
			}
			r = command(t.Context(), nil, "ledger", "verify", "--json", "--ledger", at)
			r.want(t, exitNo)
			if !strings.Contains(r.stdout, `"ok": false`) || !strings.Contains(r.stdout, `"key": "`+tc.key+`"`) {
				t.Errorf("stdout %q, want %s", r.stdout, tc.key)
			}
			r = command(t.Context(), nil, "token", "create", "--ledger", at, "--role", "agent", "--name", "bot")
			if (r.code == exitYes) != tc.opens {
				t.Errorf("token create: exit code %d, %s", r.code, r.stderr)
			}
		})
	}
}

// TestTokenListShowsWhatIsThere: whoever can write the file can write anything into it.
func TestTokenListShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	path := tokenLedger(t)
	tampered(t, path, "UPDATE tokens SET id = 'i' || char(0x1b), role = 'r' || char(0x9b), expires = '2' || char(0x202e), name = 'n' || char(0x2028)")
	r := command(t.Context(), nil, "token", "list", "--ledger", "sqlite:"+path)
	r.want(t, exitYes)
	for _, want := range []string{`i\u001b`, `r\u009b`, `2\u202e`, `n\u2028`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("stdout %q, want %s", r.stdout, want)
		}
	}
	if strings.ContainsAny(r.stdout, "\x1b\u009b\u202e\u2028") {
		t.Errorf("stdout %q, want nothing that moves what is read", r.stdout)
	}
}
