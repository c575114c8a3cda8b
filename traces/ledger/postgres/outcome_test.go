//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// noStandby is a synchronous standby that does not exist: no commit is acknowledged.
const noStandby = "nobody"

// beganAt is when a statement began, in microseconds.
const beganAt = "(extract(epoch FROM query_start) * 1000000)::bigint"

// slowCommit makes every COMMIT that adds an entry wait before it takes effect.
const slowCommit = `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`

// TestUnknownOutcomes: an Update whose COMMIT has no answer, or one with a warning, returns only when the outcome is known.
func TestUnknownOutcomes(t *testing.T) {
	c := pgtest.Start(t)
	for _, tc := range []struct {
		name      string
		standby   string // at the COMMIT
		before    string // in the database
		waits     string // for this event the COMMIT waits
		interrupt string // the COMMIT; abs: nothing does
		settles   bool   // before the time is over
		want      error
		committed bool
	}{
		{"wait-cancelled", noStandby, "", "SyncRep", "pg_cancel_backend", true, nil, true},
		{"wait-cancelled-for-long", noStandby, "", "SyncRep", "pg_cancel_backend", false, ledger.ErrUnsettled, true},
		{"wait-cancelled-and-warnings-off", noStandby, "ALTER ROLE pgfsm_serve SET client_min_messages = error", "SyncRep", "pg_cancel_backend", true, nil, true},
		{"statement-timeout", noStandby, "ALTER ROLE pgfsm_serve SET statement_timeout = '1s'", "SyncRep", "abs", true, nil, true},
		{"committed-and-cut", noStandby, "", "SyncRep", "pg_terminate_backend", true, nil, true},
		{"cut-before-the-commit", "", slowCommit, "PgSleep", "pg_terminate_backend", true, ledger.ErrUnavailable, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.Set(t, "synchronous_standby_names", "") // a case that failed leaves its own, and then nothing commits
			db := strings.ReplaceAll(tc.name, "-", "_")
			for _, do := range []func() error{
				func() error { return c.Exec(t.Context(), "postgres", "CREATE DATABASE "+db) },
				func() error { return c.Ledger(t.Context(), db) },
				func() error { return c.Exec(t.Context(), db, "SELECT 1;"+tc.before) },
			} {
				check.NoError(t, do())
			}
			patience := time.Minute // a slow machine must not spend it between two statements
			if !tc.settles || tc.interrupt == "abs" {
				patience = 6 * time.Second // the store waits for twice as long
			}
			s := openStore(t, c.URL(serves, db)+"&lease="+patience.String())
			if _, err := s.AcquireOwnership(t.Context(), "01a20937-927b-7666-a7a9-3a3ce7bb963b"); err != nil {
				t.Fatal(err)
			}
			c.Set(t, "synchronous_standby_names", tc.standby)
			came := make(chan error, 1)
			under, ended := context.WithCancelCause(t.Context())
			go func() {
				err := s.Update(context.Background(), addEntry(0))
				ended(fmt.Errorf("Update() = %w, and nothing waits", err))
				came <- err
			}()
			waiting := " FROM pg_stat_activity WHERE wait_event = '" + tc.waits + "' AND query = 'COMMIT'"
			began := await(under, t, c, "SELECT coalesce(max("+beganAt+"), 0)"+waiting)
			await(under, t, c, "SELECT count("+tc.interrupt+"(pid))"+waiting)
			if tc.settles && tc.standby != "" { // the COMMIT that settles it waits, too
				await(under, t, c, fmt.Sprintf("SELECT count(%s(pid))%s AND %s > %d", tc.interrupt, waiting, beganAt, began))
			}
			if tc.settles {
				select {
				case err := <-came:
					if tc.standby != "" {
						t.Errorf("Update() = %v before the standby has it", err)
					}
					came <- err
				case <-time.After(500 * time.Millisecond): // it shows that Update waits; it need not be longer
				}
				c.Set(t, "synchronous_standby_names", "")
			}
			if err := <-came; !errors.Is(err, tc.want) {
				t.Errorf("Update() = %v, want %v", err, tc.want)
			}
			c.Set(t, "synchronous_standby_names", "")
			if size := size(t, s); (size == 1) != tc.committed {
				t.Errorf("the log has %d entries, committed: %t", size, tc.committed)
			}
			if err := c.Exec(t.Context(), db, "DROP TRIGGER IF EXISTS slow ON entries; ALTER ROLE pgfsm_serve RESET ALL"); err != nil {
				t.Fatal(err)
			}
			if err := s.Update(t.Context(), addEntry(size(t, s))); err != nil {
				t.Errorf("Update() afterwards = %v", err)
			}
		})
	}
}

// TestTheOutcomeOfAProcessThatStoodStill: the row that would settle a commit is gone after a day, and then the commit is not taken for undone.
func TestTheOutcomeOfAProcessThatStoodStill(t *testing.T) {
	c, db := shared.Database(t)
	s, owner := owned(t, c.URL(serves, db)+"&lease=5m") // it is not renewed during the test
	// The sequence outlives the transaction that is cut off. The store then asks, and finds its row gone.
	check.NoError(t, c.Exec(t.Context(), db, `CREATE SEQUENCE cuts;
CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
	'BEGIN PERFORM nextval(''cuts''); PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut();
CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
	'BEGIN IF (SELECT is_called FROM cuts) THEN DELETE FROM replicas WHERE owner = ''`+owner+`''; END IF; RETURN NULL; END';
CREATE TRIGGER forget AFTER UPDATE ON log FOR EACH STATEMENT EXECUTE FUNCTION forget()`))
	err := s.Update(t.Context(), addEntry(0))
	if !errors.Is(err, ledger.ErrUnsettled) {
		t.Errorf("Update() = %v, want ErrUnsettled", err)
	}
}

// await runs a query as the superuser until its number is not zero, and returns that. The test fails if ctx ends before.
func await(ctx context.Context, t *testing.T, c *pgtest.Cluster, query string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(ctx, c.URL(pgtest.Superuser, "postgres"))
	check.NoError(t, err)
	defer conn.Close(context.Background())
	for ; n == 0; time.Sleep(10 * time.Millisecond) { // the server has other work
		if err := conn.QueryRow(ctx, query).Scan(&n); err != nil {
			t.Fatal(err, context.Cause(ctx))
		}
	}
	return n
}

// size is that of the log.
func size(t *testing.T, s *postgres.Store) int64 {
	t.Helper()
	var end ledger.End
	if err := s.View(t.Context(), func(r ledger.Reader) (err error) {
		end, err = r.End()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return end.Size
}
