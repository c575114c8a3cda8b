package stores_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func TestUnknownURLs(t *testing.T) {
	for _, url := range []string{"pgfsm.db", "mysql:secret", "SQLITE:pgfsm.db", "sqlite:", ""} {
		if _, err := stores.Open(url, stores.ToWrite); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q) = %v", url, err)
		}
	}
}

// TestMakeALedgerAtOnce: of many that open a ledger that does not exist, all can record.
func TestMakeALedgerAtOnce(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "pgfsm.db")
	var opened sync.WaitGroup
	for range 50 {
		opened.Go(func() {
			store, err := stores.Open(url, stores.ToWrite)
			if err != nil {
				t.Error(err)
				return
			}
			defer store.Close()
			l, err := ledger.Open(t.Context(), store, ledger.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			if _, _, err := l.CreateToken(t.Context(), ledger.LocalUser("local:root"), "ci", ledger.RoleAgent, ""); err != nil {
				t.Error(err)
			}
		})
	}
	opened.Wait()
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
