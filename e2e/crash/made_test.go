//go:build unix

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/stores"
)

// TestLogIsMadeOnce: ledgers that record first in one new store at the same time make one log, whose name each of them has.
func TestLogIsMadeOnce(t *testing.T) {
	const ledgers = 8
	url := ledgertest.NewURL(t)
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i := range ledgers {
		group.Go(func() {
			store, err := stores.Open(url, stores.ToWrite)
			if err != nil {
				t.Error(err)
				return
			}
			l, err := ledger.Open(context.Background(), store, ledger.Options{})
			if err == nil {
				<-begin
				_, _, err = l.CreateToken(context.Background(), ledger.Local("local:root"), fmt.Sprintf("auditor %d", i), ledger.RoleAuditor, "")
				err = errors.Join(err, l.Close())
			}
			if err := errors.Join(err, store.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	group.Wait()
	store := reader(t, url)
	defer store.Close()
	err := store.View(context.Background(), func(r ledger.Reader) error {
		origin, err := ledger.Origin(r)
		if err != nil {
			return err
		}
		report, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{})
		if report.Entries != ledgers+1 || report.Tokens != ledgers || report.Origin != origin {
			t.Errorf("Verify() = %+v, want %d entries of the log %s", report, ledgers+1, origin)
		}
		return err
	})
	check.NoError(t, err)
}
