package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
)

func TestAnotherVersion(t *testing.T) {
	for v, want := range map[int]error{0: ErrOlder, schemaVersion + 1: ErrNewer} {
		s := fresh(t)
		run(t, raw(t, s.path), fmt.Sprint("PRAGMA user_version = ", v))
		_, err := Open(s.path)
		refused(t, err, want, s.path, fmt.Sprintf("its schema is %d,", v))
		_, err = OpenReadOnly(s.path)
		refused(t, err, want, s.path, fmt.Sprintf("its schema is %d,", v))
	}
}

// TestOpenedAtOnce: many make the same file, and none undoes what another recorded.
func TestOpenedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var group sync.WaitGroup
	var mu sync.Mutex
	next := int64(0)
	for range 8 {
		group.Go(func() {
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			mu.Lock()
			defer mu.Unlock()
			next++
			if err := s.Update(context.Background(), addEntry(next)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s, err := Open(path)
	check.NoError(t, err)
	defer s.Close()
	if n := entries(t, s); n != 8 {
		t.Errorf("%d entries, want 8", n)
	}
}
