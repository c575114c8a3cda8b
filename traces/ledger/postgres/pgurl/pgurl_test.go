package pgurl

import (
	"strings"
	"testing"
	"time"
)

func TestName(t *testing.T) {
	if got := Name("postgres://me:secret@db.example:5433/x?sslmode=require"); got != "postgres://db.example:5433/x" {
		t.Errorf("Name() = %q", got)
	}
	for _, password := range []string{"/secret", "12/secret", "?secret", "12?secret", "#secret", "12#secret", "a/secret", "%secret", "se@12/cret", "[secret"} {
		text := "postgres://me:" + password + "@db.example/x?sslmode=require"
		if got := Name(text); got != "postgres:" {
			t.Errorf("Name(%q) = %q", text, got)
		}
		if _, _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write %XX") || strings.Contains(err.Error(), "cret") {
			t.Errorf("Parse(%q) = %v", text, err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, url, want, wrong string }{
		{"plain", "postgres://me:secret@db.example/x?sslmode=verify-full", "postgres://me:secret@db.example/x?sslmode=verify-full", ""},
		{"other-scheme", "postgresql://db/x?sslmode=disable", "postgresql://db/x?sslmode=disable", ""},
		{"local", "postgres://localhost:5433/x", "postgres://localhost:5433/x", ""},
		{"loopback", "postgres://127.0.0.1:5433/x", "postgres://127.0.0.1:5433/x", ""},
		{"several-hosts", "postgres:///x?host=127.0.0.1,::1&port=1,2", "postgres:///x?host=127.0.0.1,::1&port=1,2", ""},
		{"socket", "postgres:///x?host=/run/postgresql", "postgres:///x?host=/run/postgresql", ""},
		{"lease", "postgres://localhost/x?lease=20s&port=1", "postgres://localhost/x?port=1", ""},
		{"without-sslmode", "postgres://me:secret@db.example/x", "", "sslmode=verify-full"},
		{"one-host-elsewhere", "postgres:///x?host=localhost,db.example", "", "sslmode=verify-full"},
		{"parameter-host-elsewhere", "postgres://localhost/x?host=db.example", "", "sslmode=verify-full"},
		{"no-host", "postgres:///x", "", "sslmode=verify-full"}, // PGHOST may name one
		{"downgrade", "postgres://localhost/x?sslmode=prefer", "", "sslmode=verify-full"},
		{"unknown-parameter", "postgres://localhost/x?application_name=secret", "", `parameter "application_name"`},
		{"twice", "postgres://localhost/x?lease=2s&lease=3s", "", "lease more than once"},
		{"short-lease", "postgres://localhost/x?lease=1ms", "", "from 1s to 10m0s"},
		{"fragment", "postgres://me:secret#@localhost/x", "", "is not of the form"},
		{"another-scheme", "mysql://secret@localhost/x", "", "is not of the form"},
		{"malformed", "postgres://me:secret%@localhost/x", "", "is not of the form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, lease, err := Parse(c.url)
			if c.wrong == "" {
				want := DefaultLease
				if c.name == "lease" {
					want = 20 * time.Second
				}
				if got != c.want || lease != want || err != nil {
					t.Errorf("Parse() = %q, %s, %v", got, lease, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Parse() = %v, want %q", err, c.wrong)
			}
		})
	}
}
