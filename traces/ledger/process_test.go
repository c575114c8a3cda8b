package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/ledger/storetest"
)

// A process is the store that one process of a test has open.
type process interface {
	ledger.Store
	// Open opens the store in another process.
	Open() process
	// Crash kills the process: it can do nothing more, and its owners are gone.
	Crash()
}

// memory is a process whose store is in memory.
type memory struct{ *storetest.Memory }

func (m memory) Open() process { return memory{m.Memory.Open()} }

// newProcess makes a store: in memory, or in PostgreSQL if the tests are to run with that.
func newProcess(tb testing.TB) process {
	tb.Helper()
	if url := newDatabase(tb); url != "" {
		return openDatabase(tb, url)
	}
	return memory{storetest.NewMemory()}
}

// newPath returns the path of a file for a new ledger, or the URL of a database if the tests are to run with PostgreSQL.
func newPath(tb testing.TB) string {
	tb.Helper()
	if url := newDatabase(tb); url != "" {
		return url
	}
	return filepath.Join(tb.TempDir(), "pgfsm.db")
}

// memoryOf skips a test that makes its store fail, if the tests run with PostgreSQL.
func memoryOf(tb testing.TB, p process) *storetest.Memory {
	tb.Helper()
	m, ok := p.(memory)
	if !ok {
		tb.Skip("the store cannot be made to fail")
	}
	return m.Memory
}

// deskAtPath is a process that has the ledger of a path open.
func deskAtPath(tb testing.TB, path string, clock *ledgertest.Clock) *desk {
	tb.Helper()
	return &desk{ledgertest.Open(tb, openPath(tb, path), clock), nil}
}

func openPath(tb testing.TB, path string) ledger.Store {
	tb.Helper()
	if strings.HasPrefix(path, "postgres:") {
		return openDatabase(tb, path)
	}
	store, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// database is a process whose store is in PostgreSQL.
type database struct {
	*postgres.Store
	tb     testing.TB
	url    string
	owners []string
}

func openDatabase(tb testing.TB, url string) *database {
	tb.Helper()
	store, err := postgres.Open(url)
	if err != nil {
		tb.Fatal(err)
	}
	return &database{Store: store, tb: tb, url: url}
}

func (d *database) Open() process { return openDatabase(d.tb, d.url) }

func (d *database) Own(ctx context.Context, owner string) (func() error, error) {
	d.owners = append(d.owners, owner)
	return d.Store.Own(ctx, owner)
}

func (d *database) Crash() {
	d.Close()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.url)
	if err == nil { // nobody renews the leases any more; the tests do not wait until they run out
		_, err = conn.Exec(ctx, "UPDATE replicas SET until = clock_timestamp() - interval '1 second' WHERE owner = ANY($1)", d.owners)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		d.tb.Error(err)
	}
}
