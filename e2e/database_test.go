package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestServeFailuresOfTheDatabase: while the database refuses something, no call is made, the answer and /readyz say why, and calls continue
// without a restart when it is mended.
func TestServeFailuresOfTheDatabase(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	c := pgtest.Start(t)
	disk, noDisk := smallDisk(t)
	do := func(t *testing.T, db, sql string) {
		t.Helper()
		check.NoError(t, c.Exec(context.Background(), db, sql))
	}
	// setting sets a parameter of PostgreSQL for new sessions of the gateway, and ends its open sessions.
	setting := func(name, value string) func(*testing.T, string) func() {
		return func(t *testing.T, db string) func() {
			const role, ends = "ALTER ROLE pgfsm_serve IN DATABASE ", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pgfsm_serve' AND datname = '"
			do(t, db, role+db+" SET "+name+" = "+value)
			do(t, db, ends+db+"'")
			return func() { do(t, db, role+db+" RESET "+name); do(t, db, ends+db+"'") }
		}
	}
	// slowEntries has PostgreSQL wait before it writes an entry, for so many seconds.
	slowEntries := func(t *testing.T, db, seconds string) {
		do(t, db, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(`+seconds+`); RETURN NEW; END';
			CREATE TRIGGER slow BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION slow()`)
	}
	database := func(name string) string {
		do(t, "postgres", "CREATE DATABASE "+name)
		check.NoError(t, c.Ledger(t.Context(), name))
		return c.URL("pgfsm_serve", name) + "&lease=3s"
	}
	timeouts := database("timeouts")
	t.Run("timeouts", func(t *testing.T) {
		t.Parallel()
		a := newOfficeOn(t, timeouts, allowLook, "")
		b := a.beside(t)
		var sent atomic.Int32
		slowEntries(t, "timeouts", "random() * 0.04")
		end := setting("statement_timeout", "25")(t, "timeouts") // some calls end before their first commit, some before their second
		var all sync.WaitGroup
		for i := range 8 {
			client := []*office{a, b}[i%2].stateless(`{}`)
			all.Go(func() {
				for range 8 {
					if got := client.call(t, "echo__look", `{"n":1}`); got.Result != nil && got.Result.Meta.Decision.Effect != "not_sent" {
						sent.Add(1)
					}
				}
			})
		}
		all.Wait()
		end()
		a.u.Reached(t, sent.Load())
		intents := int32(0)
		for _, q := range recorded(t, a.dir) {
			if q.Sent != "" {
				intents++
			}
		}
		a.u.Reached(t, intents)
		verifies(t, a.dir)
	})
	for name, f := range map[string]struct { // in any order
		begin        func(t *testing.T, db string) (end func())
		says, reason string
	}{
		"disk-full": {func(t *testing.T, db string) func() {
			if noDisk != nil {
				t.Skip(noDisk)
			}
			do(t, db, "CREATE TABLESPACE small LOCATION '"+disk+"'")
			for _, table := range []string{"entries", "runs", "log", "replicas"} {
				do(t, db, "ALTER TABLE "+table+" SET TABLESPACE small")
			}
			return fill(t, disk)
		}, "No space left on device", "ledger_unavailable"},
		"too-many-connections": {func(t *testing.T, db string) func() {
			do(t, db, "ALTER DATABASE "+db+" CONNECTION LIMIT 0")
			do(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pgfsm_serve' AND datname = '"+db+"'")
			return func() { do(t, db, "ALTER DATABASE "+db+" CONNECTION LIMIT -1") }
		}, "too many connections", "ledger_unavailable"},
		"no-right": {func(t *testing.T, db string) func() {
			do(t, db, "REVOKE INSERT ON entries FROM pgfsm_serve")
			return func() { do(t, db, "GRANT INSERT ON entries TO pgfsm_serve") }
		}, "permission denied for table entries", "ledger_unavailable"},
		"other-table": {func(t *testing.T, db string) func() {
			do(t, db, "ALTER TABLE entries RENAME run TO run_id")
			return func() { do(t, db, "ALTER TABLE entries RENAME run_id TO run") }
		}, `column \"run\"`, "ledger_schema"},
		"read-only": {setting("default_transaction_read_only", "on"), "read-only", "ledger_read_only"},
		"statement-timeout": {func(t *testing.T, db string) func() {
			slowEntries(t, db, "10")
			end := setting("statement_timeout", "100")(t, db)
			return func() { do(t, db, "DROP TRIGGER slow ON entries"); end() }
		}, "statement timeout", "ledger_unavailable"},
		"lock-timeout": {func(t *testing.T, db string) func() {
			end := setting("lock_timeout", "1")(t, db)
			other, err := pgx.Connect(t.Context(), c.URL(pgtest.Superuser, db))
			if err == nil {
				_, err = other.Exec(t.Context(), "BEGIN; SELECT FROM log FOR UPDATE")
			}
			check.NoError(t, err)
			return func() { other.Close(context.Background()); end() }
		}, "lock timeout", "ledger_unavailable"},
	} {
		db := strings.ReplaceAll(name, "-", "_")
		url := database(db)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOfficeOn(t, url, allowLook, "")
			client := o.stateless(`{}`)
			works := func() {
				t.Helper()
				soon(t, "the gateway is ready", func() bool { return o.health(t, "/readyz") == http.StatusOK })
				if got := client.call(t, "echo__look", `{"n":1}`); got.code() != "hi" {
					t.Errorf("the call is answered %s", got.Raw)
				}
			}
			works()
			end := f.begin(t, db)
			soon(t, "the call is refused and says why", func() bool {
				got := client.call(t, "echo__look", `{"n":1}`)
				return strings.Contains(string(got.Raw), f.says)
			})
			calls := o.u.Calls.Load()
			client.call(t, "echo__look", `{"n":1}`).wants(t, "record_failed", "not_sent", "later")
			if code, body := o.gets(t, "/readyz", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, `"reasons":["`+f.reason+`"]`) {
				t.Errorf("GET /readyz: %d %s, want the reason %s", code, body, f.reason)
			}
			o.u.Reached(t, calls)
			end()
			works()
			if got := len(recorded(t, o.dir)); int32(got) != o.u.Calls.Load() {
				t.Errorf("%d runs are recorded, and %d calls were made", got, o.u.Calls.Load())
			}
			verifies(t, o.dir)
		})
	}
}

// smallDisk is a disk of 8 MB that belongs to the user of PostgreSQL. The error says why there is none on this machine.
func smallDisk(t *testing.T) (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk") // whose parent others may enter
	check.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	owner, err := user.Lookup("postgres")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=8m,mode=700,uid=%s,gid=%s", owner.Uid, owner.Gid), "pgfsm-test", dir).
		CombinedOutput(); err != nil {
		return "", fmt.Errorf("nothing can be mounted here: %w: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() }) // PostgreSQL has files open
	return dir, nil
}

// fill fills a disk. end makes room again.
func fill(t *testing.T, disk string) (end func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "ballast"))
	check.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	return func() { os.Remove(f.Name()) }
}
