//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// owned returns a store that owns a lease.
func owned(t *testing.T, url string) (s *postgres.Store, owner string) {
	t.Helper()
	s, owner = openStore(t, url), uuid.NewString()
	if _, err := s.AcquireOwnership(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	return s, owner
}

// gone asks within a transaction, and commits it.
func gone(t *testing.T, s *postgres.Store, owner string) (gone bool) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx ledger.Tx) (err error) {
		gone, err = tx.OwnerGone(owner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return gone
}

// expire makes a lease run out, as if its process had been stopped for long.
func expire(t *testing.T, c *pgtest.Cluster, db, owner string) {
	t.Helper()
	check.NoError(t, c.Exec(t.Context(), db, "UPDATE replicas SET until = clock_timestamp() - interval '1 second' WHERE owner = '"+owner+"'"))
}

// TestFence: a store whose lease ran out records nothing once another one has found that, whether or not it has noticed.
func TestFence(t *testing.T) {
	c, db := shared.Database(t)
	url := c.URL(serves, db) + "&lease=5m" // it is not renewed during the test
	s, owner := owned(t, url)
	other, _ := owned(t, url)
	if gone(t, other, owner) {
		t.Error("an owner with a lease is gone")
	}
	expire(t, c, db, owner)
	if is, err := other.OwnerGone(t.Context(), owner); !is || err != nil {
		t.Errorf("Gone() = %t, %v", is, err)
	}
	undone := errors.New("undone")
	if err := other.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.OwnerGone(owner)
		return errors.Join(err, undone)
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), addEntry(0)); err != nil { // nobody ended the lease, and the Update renews it
		t.Errorf("Update() after the lease ran out = %v", err)
	}
	if gone(t, other, owner) {
		t.Error("an owner that has recorded is gone")
	}
	expire(t, c, db, owner)
	if !gone(t, other, owner) {
		t.Error("an owner whose lease ran out is not gone")
	}
	if err := s.Update(t.Context(), addEntry(1)); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("Update() = %v, want ErrFenced", err)
	}
	if err := s.View(t.Context(), func(ledger.Reader) error { return nil }); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("View() = %v, want ErrFenced", err)
	}
	if n := size(t, other); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
	if _, err := other.AcquireOwnership(t.Context(), owner); err == nil {
		t.Error("an owner whose lease was ended is owned again")
	}
}

// TestFenceDuringAnUpdate: while a transaction is under way, its lease is not ended; the one that ends it comes before or after.
func TestFenceDuringAnUpdate(t *testing.T) {
	c, db := shared.Database(t)
	url := c.URL(serves, db) + "&lease=15s"
	s, owner := owned(t, url)
	other, _ := owned(t, url)
	asked := make(chan bool)
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		go func() { asked <- gone(t, other, owner) }()
		await(t.Context(), t, c, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '"+db+"'")
		return addEntry(0)(tx)
	})
	if is := <-asked; is || err != nil {
		t.Errorf("Update() = %v, gone: %t", err, is)
	}
}

// TestALeaseThatRunsOutWhileItIsAsked: an owner is gone only if its lease was ended, because it can renew one that only ran out.
func TestALeaseThatRunsOutWhileItIsAsked(t *testing.T) {
	c, db := shared.Database(t)
	s, owner := openStore(t, c.URL(serves, db)), uuid.NewString()
	setup := `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END';
CREATE TRIGGER wait AFTER UPDATE ON replicas FOR EACH STATEMENT EXECUTE FUNCTION wait();
INSERT INTO replicas (owner, since, until) VALUES ('` + owner + "', clock_timestamp(), clock_timestamp() + interval '1 second')"
	check.NoError(t, c.Exec(t.Context(), db, setup))
	for _, want := range []bool{false, true} {
		if is := gone(t, s, owner); is != want {
			t.Errorf("Gone() = %t, want %t", is, want)
		}
	}
}

// TestRenewal: a lease is renewed by its store, and a store finds out without an Update that its lease was ended.
func TestRenewal(t *testing.T) {
	c, db := shared.Database(t)
	s, owner := owned(t, c.URL(serves, db)+"&lease=3s")
	other, _ := owned(t, c.URL(serves, db)+"&lease=15s")
	for range 5 {
		await(t.Context(), t, c, "SELECT 1 FROM pg_sleep(1)")
		if gone(t, other, owner) {
			t.Fatal("the lease ran out")
		}
	}
	check.NoError(t, c.Exec(t.Context(), db, "UPDATE replicas SET over = true WHERE owner = '"+owner+"'"))
	for deadline := time.Now().Add(time.Minute); ; {
		err := s.View(t.Context(), func(ledger.Reader) error { return nil })
		if errors.Is(err, ledger.ErrFenced) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("View() = %v, want ErrFenced", err)
		}
	}
}

// TestClockThatIsSet: a transaction has the database's time though this machine's clock was set, or stood still. The time of a record would
// otherwise stop all processes of the ledger.
func TestClockThatIsSet(t *testing.T) {
	c, db := shared.Database(t)
	s, _ := owned(t, c.URL(serves, db)+"&lease=5m") // it is not renewed during the test
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		s.SetAhead(by)
		if err := s.Update(t.Context(), func(ledger.Tx) error {
			if d := time.Until(s.Now()).Abs(); d > time.Second {
				t.Errorf("Now() is %s from the database's clock", d)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestAStoppedProcessStopsNobodyForLong: the database ends a transaction that does nothing.
func TestAStoppedProcessStopsNobodyForLong(t *testing.T) {
	c, db := shared.Database(t)
	s, _ := owned(t, c.URL(serves, db)+"&lease=1s")
	other, _ := owned(t, c.URL(serves, db)+"&lease=15s")
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		if err := other.Update(context.Background(), addEntry(0)); err != nil { // it waits for the end of this one
			t.Error(err)
		}
		return addEntry(0)(tx)
	})
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Update() = %v, want ErrUnavailable", err)
	}
	if n := size(t, other); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
}

// TestAStoppedProcessThatIsSentMuch: the database ends a transaction whose client takes nothing of a large result. Otherwise it would keep the
// log's lock until the process continues.
func TestAStoppedProcessThatIsSentMuch(t *testing.T) {
	for name, server := range map[string]func(*testing.T) string{ // in any order
		"direct":           func(t *testing.T) string { return shared.Cluster(t).Address() },
		"through-a-pooler": func(t *testing.T) string { return shared.Cluster(t).Pooler(t, serves, prunes) },
	} {
		t.Run(name, func(t *testing.T) { isSentMuch(t, server(t)) })
	}
}

func isSentMuch(t *testing.T, server string) {
	c, db := shared.Database(t)
	p := pgtest.NewProxy(t, server)
	s, _ := owned(t, pgtest.URL(p.Address(), serves, db)+"&lease=9s")
	other, _ := owned(t, c.URL(serves, db)+"&lease=15s")
	text := strings.Repeat("much ", 400_000) // 16 are a page, and more than both sides buffer
	for i := range 16 {
		b := ledger.Blob{Digest: canonical.Sum("test", []byte{byte(i)}), Kind: "test", Text: text}
		check.NoError(t, other.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutBlob(b) }))
	}
	done := make(chan error, 1)
	locked := make(chan struct{})
	go func() {
		done <- s.Update(context.Background(), func(tx ledger.Tx) error {
			p.Stall()
			close(locked)
			for _, err := range tx.Blobs() {
				if err != nil {
					return err
				}
			}
			return addEntry(0)(tx)
		})
	}()
	<-locked
	if err := other.Update(context.Background(), addEntry(0)); err != nil { // it waits for the end of the other transaction
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Errorf("Update() = %v: it ended before the database ended its transaction, so this shows nothing", err)
	default:
	}
	p.Restore()
	if err := <-done; !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Update() = %v, want ErrUnavailable", err)
	}
	if n := size(t, other); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
}

// TestReleaseDoesNotWait: a lease whose end the database does not acknowledge runs out.
func TestReleaseDoesNotWait(t *testing.T) {
	c, db := shared.Database(t)
	s, owner := openStore(t, c.URL(serves, db)), uuid.NewString()
	release, err := s.AcquireOwnership(t.Context(), owner)
	check.NoError(t, err)
	if err := c.Exec(t.Context(), db, "CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN OLD; END $$; "+
		"CREATE TRIGGER stand_still BEFORE DELETE ON replicas FOR EACH ROW EXECUTE FUNCTION stand_still()"); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Errorf("release() = %v", err)
	}
	if is, err := s.OwnerGone(t.Context(), owner); is || err != nil {
		t.Errorf("Gone() = %t, %v: the lease should run out", is, err)
	}
}
