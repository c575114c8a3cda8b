//go:build unix

package pgtest_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/postgres/pgtest"
)

var bed pgtest.Shared

func TestMain(m *testing.M) { os.Exit(bed.Main(m)) }

func exec(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func value[T any](t *testing.T, url, sql string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check.NoError(t, err)
	defer conn.Close(t.Context())
	check.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&v))
	return v
}

func add(t *testing.T, url string) {
	t.Helper()
	check.NoError(t, exec(t.Context(), url, "INSERT INTO numbers VALUES (1)"))
}

const count = "SELECT count(*) FROM numbers"

func TestDatabasesOfASharedClusterAreApart(t *testing.T) {
	one, other := bed.URL(t), bed.URL(t)
	check.NoError(t, exec(t.Context(), one, "UPDATE log SET size = 1"))
	const size = "SELECT size FROM log"
	if n, m := value[int](t, one, size), value[int](t, other, size); n != 1 || m != 0 {
		t.Errorf("the logs have the sizes %d and %d, want 1 and 0", n, m)
	}
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		if got := value[string](t, one, "SHOW "+setting); got != "on" {
			t.Errorf("%s is %s", setting, got)
		}
	}
}

// What was committed is there after each way in which a server stops.
func TestStops(t *testing.T) {
	c := pgtest.Start(t)
	url := c.URL(pgtest.Superuser, "postgres")
	check.NoError(t, exec(t.Context(), url, "CREATE TABLE numbers (n bigint)"))
	c.Set(t, "work_mem", "5MB")
	for i, stop := range []func() error{c.Stop, c.StopAtOnce, c.Kill} {
		add(t, url)
		check.NoError(t, stop())
		check.NoError(t, c.Start())
		if n := value[int](t, url, count); n != i+1 {
			t.Errorf("stop %d: %d rows, want %d", i, n, i+1)
		}
	}
	if got := value[string](t, url, "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s", got)
	}
}
