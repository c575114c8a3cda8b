package stores_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/traces/ledger/stores"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct{ name, url, in, wrong string }{
		{"relative", "sqlite:pgfsm.db", "sqlite:folder/pgfsm.db", ""},
		{"absolute", "sqlite:/var/lib/pgfsm.db", "sqlite:/var/lib/pgfsm.db", ""},
		{"with-a-colon", "sqlite:a:b.db", "sqlite:folder/a:b.db", ""},
		{"no-scheme", "pgfsm.db", "pgfsm.db", "has no scheme"},
		{"unknown-scheme", "mysql:secret", "mysql:secret", `the scheme "mysql", which is unknown`},
		{"scheme-in-upper-case", "SQLITE:pgfsm.db", "SQLITE:pgfsm.db", "unknown"},
		{"no-file", "sqlite:", "sqlite:folder", "names no file"},
		{"folder", "sqlite:data/", "sqlite:folder/data", "names no file"},
		{"home", "sqlite:~/pgfsm.db", "sqlite:folder/~/pgfsm.db", "begins with ~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := stores.In(c.url, "folder"); filepath.ToSlash(got) != c.in {
				t.Errorf("In() = %q, want %q", got, c.in)
			}
			err := stores.Check(c.url)
			if c.wrong == "" {
				if err != nil {
					t.Errorf("Check() = %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Check() = %v, want %q", err, c.wrong)
			}
			if _, err := stores.Open(c.url, stores.ToRecord); err == nil {
				t.Error("Open() succeeds")
			}
		})
	}
}

func TestOpenALedgerThatDoesNotExist(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "pgfsm.db")
	for _, p := range []stores.Purpose{stores.ToRead, stores.ToChange} {
		if _, err := stores.Open(url, p); !errors.Is(err, stores.ErrMissing) {
			t.Errorf("Open(%d) = %v, want ErrMissing", p, err)
		}
	}
	for _, p := range []stores.Purpose{stores.ToWrite, stores.ToRead, stores.ToChange} {
		s, err := stores.Open(url, p)
		if err != nil {
			t.Fatalf("Open(%d) = %v", p, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
