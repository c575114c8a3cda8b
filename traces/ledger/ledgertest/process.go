package ledgertest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/stores"
	"pgfsm/traces/ledger/storetest"
)

// A Process is the store that one process of a test has open.
type Process interface {
	ledger.Store
	// Open opens the store in another process.
	Open() Process
	// Crash kills the process: it can do nothing more, and its owners are gone.
	Crash()
}

// Memory is a process whose store is in memory.
type Memory struct{ *storetest.Memory }

// Open is [Process.Open].
func (m Memory) Open() Process { return Memory{m.Memory.Open()} }

// NewProcess makes a store: in memory, or in PostgreSQL if the tests are to run with that.
func NewProcess(tb testing.TB) Process {
	tb.Helper()
	if url := newDatabase(tb); url != "" {
		return openDatabase(tb, url)
	}
	return Memory{storetest.NewMemory()}
}

// NewURL returns the URL of a file for a new ledger, or that of a database if the tests are to run with PostgreSQL.
func NewURL(tb testing.TB) string {
	tb.Helper()
	if url := newDatabase(tb); url != "" {
		return url
	}
	return "sqlite:" + filepath.Join(tb.TempDir(), "pgfsm.db")
}

// MemoryOf skips a test that makes its store fail, if the tests run with PostgreSQL.
func MemoryOf(tb testing.TB, p Process) *storetest.Memory {
	tb.Helper()
	m, ok := p.(Memory)
	if !ok {
		tb.Skip("the store cannot be made to fail")
	}
	return m.Memory
}

// OpenURL opens a store to write.
func OpenURL(tb testing.TB, url string) ledger.Store {
	tb.Helper()
	store, err := stores.Open(url, stores.ToWrite)
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// A database is a process whose store is in PostgreSQL.
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

func (d *database) Open() Process { return openDatabase(d.tb, d.url) }

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
