package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres/pgurl"
	"pgfsm/traces/ledger/sqlrows"
)

// maxConns bounds the connections of a process. Readers and the writer use fewer; the others are
// connections that are being closed.
const maxConns = 2 * (sqlrows.MaxReaders + 2)

// parseURL reads a URL. No error wraps an error of pgx, which repeats the URL.
func parseURL(url string) (*pgxpool.Config, time.Duration, error) {
	connection, lease, err := pgurl.Parse(url)
	if err != nil {
		return nil, 0, fmt.Errorf("the URL of the ledger %w", err)
	}
	c, err := pgxpool.ParseConfig(connection)
	if err != nil {
		return nil, 0, errors.New("the URL of the ledger cannot be read: are its parameters right, and are the files of its certificates and keys there?")
	}
	return c, lease, nil
}

// configure sets the options of every connection. Statements are not prepared, because a pooler may
// run each transaction on another connection.
func (s *Store) configure(c *pgxpool.Config) {
	c.MaxConns = maxConns
	// A role may have other settings. Poolers in transaction mode accept these two, because all
	// clients send them.
	c.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	c.ConnConfig.RuntimeParams["datestyle"] = "ISO"
	if c.ConnConfig.ConnectTimeout == 0 { // so that the other hosts of the URL are tried, too
		c.ConnConfig.ConnectTimeout = max(s.lease/3, time.Second)
	}
	c.AfterConnect = s.checkConn
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.ConnConfig.StatementCacheCapacity, c.ConnConfig.DescriptionCacheCapacity = 0, 0
	c.ConnConfig.OnNotice = func(p *pgconn.PgConn, n *pgconn.Notice) { p.CustomData()[noticed] = n }
}

// noticed is the key of the last notice in the data of a connection.
const noticed = "notice"

// checkConn rejects a new connection to a database that is not the ledger's, or that can lose
// acknowledged commits.
func (s *Store) checkConn(ctx context.Context, conn *pgx.Conn) error {
	if e := conn.PgConn().ParameterStatus("server_encoding"); e != "UTF8" {
		return fmt.Errorf("%w: its encoding is %s; make one with the encoding UTF8", ErrUnsafe, e)
	}

	var version *int64
	var fsync, commit, recovery, readOnly, bytes string
	var dbTime time.Time
	sent := time.Now()
	err := conn.QueryRow(ctx, "SELECT (SELECT max(version_id) FROM "+versionTable+
		"), current_setting('fsync'), current_setting('synchronous_commit'), "+
		"pg_is_in_recovery()::text, current_setting('transaction_read_only'), current_setting('bytea_output'), clock_timestamp()").
		Scan(&version, &fsync, &commit, &recovery, &readOnly, &bytes, &dbTime)
	var coded *pgconn.PgError

	switch {
	case errors.As(err, &coded) && coded.Code == codeNoTable:
		return ErrNoLedger
	case err != nil:
		return explainError(ctx, err)
	}

	// The settings come after the schema: without a ledger they do not matter.
	s.setClock(dbTime, sent)
	switch {
	case version == nil, *version == 0: // a migration failed
		return ErrNoLedger
	case *version != schemaVersion:
		return fmt.Errorf("%w: it has schema %d, and this version needs %d; if this version is newer, run pgfsm ledger init, otherwise start the newer version",
			ledger.ErrSchema, *version, schemaVersion)
	case bytes != "hex":
		return fmt.Errorf("%w: bytea_output is %s; set it to hex for this user", ErrUnreadable, bytes)
	case s.readOnly:
		return nil
	case fsync != "on":
		return fmt.Errorf("%w: fsync is %s; set it to on", ErrUnsafe, fsync)
	case !isDurable(commit):
		return fmt.Errorf("%w: synchronous_commit is %s; set it to on or remote_apply for this user", ErrUnsafe, commit)
	case recovery == "true" || readOnly == "on":
		return newUnavailable(errStandby)
	}

	return s.checkLast(ctx, conn)
}

// isDurable reports whether the server acknowledges a commit only after flushing it, on the
// synchronous standby too.
func isDurable(synchronousCommit string) bool {
	return synchronousCommit == "on" || synchronousCommit == "remote_apply"
}

// checkLast returns [ledger.ErrLost] if the last acknowledged entry of this store is missing.
func (s *Store) checkLast(ctx context.Context, conn *pgx.Conn) error {
	last := s.last.Load()
	if last == nil {
		return nil
	}
	var leaf []byte
	err := conn.QueryRow(ctx, leafQuery, last.index).Scan(&leaf)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return explainError(ctx, err)
	}
	return s.compareLeaf(last, leaf)
}

const leafQuery = "SELECT substr(hashes, 1, 32) FROM entries WHERE idx = $1"

// compareLeaf ends the store for good if the leaf hash of an acknowledged entry differs.
func (s *Store) compareLeaf(last *acknowledged, leaf []byte) error {
	if string(leaf) == string(last.leaf[:]) {
		return nil
	}
	return s.endWith(fmt.Errorf("%w: entry %d, with the leaf hash %s, is missing or another one now", ledger.ErrLost,
		last.index, last.leaf))
}

// An acknowledged entry is the last one of a commit that the database confirmed to this store.
type acknowledged struct {
	index int64
	leaf  tlog.Hash
}
