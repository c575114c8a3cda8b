//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
)

// standbyName is the application name of a standby; its primary waits for a standby of that name.
const standbyName = "standby"

// Standby makes a streaming standby, and from now on each commit of the cluster waits for it. The standby reaches the cluster at an
// address: the cluster's own or a proxy's. After [Cluster.Promote] it takes the cluster's place, and its commits also wait for a standby.
func (c *Cluster) Standby(t testing.TB, address string) *Cluster {
	t.Helper()
	c.Set(t, "synchronous_standby_names", standbyName)
	s, err := place(c.bin)
	check.NoError(t, err)
	t.Cleanup(s.Remove)
	host, port, err := net.SplitHostPort(address)
	check.NoError(t, err)
	conninfo := fmt.Sprintf("host=%s port=%s user=%s application_name=%s", host, port, Superuser, standbyName)
	err = s.tool("pg_basebackup", "--pgdata="+s.data(), "--dbname="+conninfo, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	if err == nil {
		err = s.Start()
	}
	if err == nil {
		err = c.Synchronous(t.Context())
	}
	check.NoError(t, err)
	return s
}

// Synchronous waits until commits of the cluster reach its standby.
func (c *Cluster) Synchronous(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL(Superuser, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for {
		var n int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n); err != nil {
			return errors.Join(errors.New("no standby follows"), err)
		}
		if n > 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Promote ends a standby's recovery: it accepts writes.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.Exec(ctx, "postgres", "SELECT pg_promote()")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
