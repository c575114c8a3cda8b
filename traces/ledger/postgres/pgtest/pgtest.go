//go:build unix

// Package pgtest runs PostgreSQL clusters for tests: with the initdb and the postgres of the machine, in a temporary directory, on
// loopback.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger/postgres"

	"github.com/jackc/pgx/v5"
)

// patience bounds the start and the stop of a server, on a busy machine too.
const patience = 2 * time.Minute

// Superuser is the role that owns a cluster. Every role logs in without a password.
const Superuser = "postgres"

// A Cluster is a PostgreSQL server with its data. It has fsync on, and listens on a loopback port and on a socket in its directory. Only
// one goroutine may call its methods at a time, except URL.
type Cluster struct {
	bin     string // the directory of initdb
	dir     string // data, log and socket
	port    int
	user    *syscall.Credential // nil: the user of this process
	process *process            // nil: stopped
}

// Start makes a cluster and runs it until the test's end. Without PostgreSQL the test is skipped; if CI is set, it fails.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c, err := create(Find(t))
	check.NoError(t, err)
	t.Cleanup(c.Remove)
	return c
}

// Find returns the folder of PostgreSQL's programs. Without them the test is skipped; if CI is set, it fails.
func Find(t testing.TB) string {
	t.Helper()
	initdb, err := filepath.EvalSymlinks(tool.Path(t, "postgresql", "initdb"))
	check.NoError(t, err)
	return filepath.Dir(initdb)
}

// create makes a cluster and starts it.
func create(bin string) (*Cluster, error) {
	c, err := place(bin)
	if err != nil {
		return nil, err
	}
	// initdb does not flush: its files are lost only if the machine fails, and then the test fails, too.
	err = c.tool("initdb", "--no-sync", "--auth=trust", "--username="+Superuser, "--encoding=UTF8", "--no-locale", "--pgdata="+c.data())
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// place makes the directory of a cluster and finds a port for it.
func place(bin string) (*Cluster, error) {
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest") // not T.TempDir: another user must be able to enter, and a socket's path must be short
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, user: user}
	if user != nil {
		err = os.Chown(dir, int(user.Uid), int(user.Gid))
	}
	if err == nil {
		c.port, err = freePort()
	}
	if err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// freePort finds a port that stays free while the server is stopped: the system gives clients higher ports.
func freePort() (int, error) {
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port is free")
}

func (c *Cluster) log() string { return filepath.Join(c.dir, "log") }

// Address returns the server's address: 127.0.0.1 and its port. It stays the same across restarts.
func (c *Cluster) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// URL returns the URL of a database for a role.
func (c *Cluster) URL(role, database string) string {
	return URL(c.Address(), role, database)
}

// URL returns the URL of a database for a role on the server at an address, which may be a proxy's.
func URL(address, role, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: address, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Exec executes statements as the superuser.
func (c *Cluster) Exec(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, c.URL(Superuser, database))
	if err != nil {
		return err
	}
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// Ledger makes the tables of a ledger in a database, and the roles.
func (c *Cluster) Ledger(ctx context.Context, database string) error {
	roles, err := postgres.Migrate(ctx, c.URL(Superuser, database))
	if err != nil {
		return err
	}
	return c.Exec(ctx, database, roles)
}

// Set changes a setting of the cluster for all sessions that begin afterwards. If the setting needs a restart, the caller restarts the
// cluster.
func (c *Cluster) Set(t testing.TB, name, value string) {
	t.Helper()
	loaded := func() (at time.Time) {
		conn, err := pgx.Connect(t.Context(), c.URL(Superuser, "postgres"))
		if err == nil {
			err = conn.QueryRow(t.Context(), "SELECT pg_conf_load_time()").Scan(&at)
			err = errors.Join(err, conn.Close(t.Context()))
		}
		check.NoError(t, err)
		return at
	}
	loadTime := loaded()
	set := fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, strings.ReplaceAll(value, "'", "''"))
	for _, sql := range []string{set, "SELECT pg_reload_conf()"} {
		check.NoError(t, c.Exec(t.Context(), "postgres", sql))
	}
	for loaded().Equal(loadTime) { // the server reloads its files asynchronously
		time.Sleep(5 * time.Millisecond)
	}
	// Whether a COMMIT waits for a standby is decided by the checkpointer's copy of the settings. It loads them before it answers.
	check.NoError(t, c.Exec(t.Context(), "postgres", "CHECKPOINT"))
}

// Remove stops the server at once and removes its data.
func (c *Cluster) Remove() {
	if c.process != nil {
		c.process.Signal(syscall.SIGCONT)      // it may be paused
		if err := c.StopAtOnce(); err != nil { // leaves no shared memory behind
			c.Kill()
		}
	}
	os.RemoveAll(c.dir) // files that cannot be removed stay in the temporary directory
}
