//go:build unix

package pgtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// The primary's commits wait for its standby, which has all of them when it takes its place, and waits for the next standby itself.
func TestFailover(t *testing.T) {
	primary := pgtest.Start(t)
	link := pgtest.NewProxy(t, primary.Address())
	standby := primary.Standby(t, link.Address())
	client := pgtest.NewProxy(t, primary.Address())
	url := pgtest.URL(client.Address(), pgtest.Superuser, "postgres")
	check.NoError(t, exec(t.Context(), url, "CREATE TABLE numbers (n bigint)"))
	add(t, url)

	link.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := exec(ctx, url, "INSERT INTO numbers VALUES (2)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit without a standby: %v, want none", err)
	}

	check.NoError(t, primary.StopAtOnce())
	check.NoError(t, standby.Promote(t.Context()))
	client.Redirect(standby.Address())
	if n := value[int](t, url, count); n != 1 {
		t.Errorf("the standby has %d rows, want 1", n)
	}
	standby.Standby(t, standby.Address())
	add(t, url)
	if n := value[int](t, url, count); n != 2 {
		t.Errorf("the standby has %d rows, want 2", n)
	}
}

func TestProxyFaults(t *testing.T) {
	c, name := bed.Database(t)
	p := pgtest.NewProxy(t, c.Address())
	url := pgtest.URL(p.Address(), pgtest.Superuser, name)
	check.NoError(t, exec(t.Context(), url, "CREATE TABLE numbers (n bigint)"))
	for _, tt := range []struct {
		name  string
		fault func()
		added int  // rows
		open  bool // the client does not learn that the connection is lost
	}{
		{"cut", p.Cut, 0, false},
		{"requests-lost", p.LoseRequests, 0, true},
		{"answers-lost", p.LoseAnswers, 1, true},
		{"delayed", func() { p.Delay(20 * time.Millisecond) }, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := value[int](t, url, count)
			conn, err := pgx.Connect(t.Context(), url)
			check.NoError(t, err)
			defer conn.Close(context.Background())
			tt.fault()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = conn.Exec(ctx, "INSERT INTO numbers VALUES (3)", pgx.QueryExecModeSimpleProtocol)
			if open := errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err); open != tt.open {
				t.Errorf("Exec() = %v", err)
			}
			p.Restore()
			if n := value[int](t, url, count); n != before+tt.added {
				t.Errorf("%d rows were added, want %d", n-before, tt.added)
			}
		})
	}
}
