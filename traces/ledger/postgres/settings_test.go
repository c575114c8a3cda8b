//go:build unix

package postgres_test

import (
	"context"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
)

// TestSettingsOfTheRole: whatever an operator has set for the role, writers wait for each other, and texts and times are read as they were written.
func TestSettingsOfTheRole(t *testing.T) {
	for _, set := range []string{
		"default_transaction_isolation = 'repeatable read'", "default_transaction_isolation = 'serializable'", "client_encoding = 'LATIN1'",
		"datestyle = 'German, DMY'", "timezone = 'Asia/Kathmandu'", "standard_conforming_strings = off", "client_min_messages = debug5",
		"search_path = nothing, public",
	} {
		t.Run(strings.ReplaceAll(set, " ", ""), func(t *testing.T) {
			c, db := shared.Database(t)
			check.NoError(t, c.Exec(t.Context(), db, "ALTER ROLE pgfsm_serve IN DATABASE "+db+" SET "+set))
			url := c.URL(serves, db) + "&lease=30s"
			one, _ := owned(t, url)
			two, _ := owned(t, url)
			came := make(chan error)
			text := "žluť \\ ' ß"
			err := one.Update(t.Context(), func(tx ledger.Tx) error {
				go func() { came <- two.Update(context.Background(), func(tx ledger.Tx) error { return addEntry(1)(tx) }) }()
				await(t.Context(), t, c, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '"+db+"'")
				if err := tx.AddRun(runRow(text)); err != nil {
					return err
				}
				return addEntry(0)(tx)
			})
			if other := <-came; err != nil || other != nil {
				t.Fatalf("Update() = %v and %v", err, other)
			}
			superuser := openStore(t, c.URL("postgres", db))
			for _, s := range []*postgres.Store{two, superuser} {
				if err := s.View(t.Context(), func(r ledger.Reader) error {
					q, err := r.Run(runID)
					if err == nil && q.Actor != text {
						t.Errorf("the text is %q, want %q", q.Actor, text)
					}
					return err
				}); err != nil {
					t.Error(err)
				}
			}
			if err := two.ReadCommitted(t.Context(), func(r ledger.Reader) error {
				for _, err := range r.Runs(ledger.Filter{}) { // begins a transaction
					if err != nil {
						return err
					}
				}
				if err := one.Update(t.Context(), addEntry(2)); err != nil {
					return err
				}
				end, err := r.End()
				if err == nil && end.Size != 3 {
					t.Errorf("ReadCommitted sees %d entries, want 3", end.Size)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
