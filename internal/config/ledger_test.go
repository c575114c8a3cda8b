package config

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

func TestLedgerURLs(t *testing.T) {
	for _, c := range []struct{ name, url, in, wrong string }{
		{"relative", "sqlite:pgfsm.db", "sqlite:folder/pgfsm.db", ""},
		{"absolute", "sqlite:/var/lib/pgfsm.db", "sqlite:/var/lib/pgfsm.db", ""},
		{"no-scheme", "pgfsm.db", "pgfsm.db", "has no scheme"},
		{"scheme-in-upper-case", "SQLITE:pgfsm.db", "SQLITE:pgfsm.db", "unknown"},
		{"database", "postgres://me@localhost/x", "postgres://me@localhost/x", ""},
		{"database-with-an-unknown-parameter", "postgres://me:secret@localhost/x?user=secret", "postgres://me:secret@localhost/x?user=secret", `"user"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ledgerIn(c.url, "folder"); filepath.ToSlash(got) != c.in {
				t.Errorf("ledgerIn() = %q, want %q", got, c.in)
			}
			err := CheckLedger(c.url)
			if c.wrong == "" && err == nil {
				return
			}
			if c.wrong == "" || err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("CheckLedger() = %v, want %q", err, c.wrong)
			}
		})
	}
}

// TestLedgerInADatabase: what is shown of the URL never has its password.
func TestLedgerInADatabase(t *testing.T) {
	for _, c := range []struct{ name, key, shown, url, wrong string }{
		{"literal", "postgres://me:secret-word@db/x?sslmode=require", "postgres://me:…@db/x?sslmode=require", "postgres://me:secret-word@db/x?sslmode=require", ""},
		{"password", "postgres://me:${env:PASSWORD}@db/x?sslmode=require", "postgres://me:…@db/x?sslmode=require",
			"postgres://me:p%40ss%20w%2Frd%25@db/x?sslmode=require", ""},
		{"all", "${file:url}", "${file:url}", "postgres://me:secret-word@db/x?sslmode=verify-full", ""},
		{"without-password", "postgres://localhost/x", "postgres://localhost/x", "postgres://localhost/x", ""},
		{"unset", "postgres://me:${env:NONE}@localhost/x", "postgres://me:…@localhost/x", "", "needs the variable NONE, which is not set"},
		{"a-file", "${env:FILE}", "${env:FILE}", "", "is not of the form"},
		{"no-tls", "${env:PLAIN}", "${env:PLAIN}", "", "sslmode=verify-full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Load("c.yaml", openMap(map[string]string{"c.yaml": minimal + "ledger: \"" + c.key + "\"\n", "allow.json": "{}"}), Overrides{})
			check.NoError(t, err)
			if l.Ledger != c.shown {
				t.Errorf("Ledger = %q, want %q", l.Ledger, c.shown)
			}
			env := map[string]string{"PASSWORD": "p@ss w/rd%", "FILE": "sqlite:pgfsm.db", "PLAIN": "postgres://me:secret-word@db/x"}
			url, err := l.LedgerURL(func(name string) (string, bool) { v, ok := env[name]; return v, ok },
				openMap(map[string]string{"url": "postgres://me:secret-word@db/x?sslmode=verify-full\n"}))
			if c.wrong == "" && (err != nil || url != c.url) {
				t.Errorf("LedgerURL() = %q, %v, want %q", url, err, c.url)
			}
			if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret-word")) {
				t.Errorf("LedgerURL() = %v, want %q", err, c.wrong)
			}
		})
	}
}
