package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// schemaVersion is that of the last migration; a test holds it to the folder.
	schemaVersion = 8
	// applicationID marks the file as a ledger. Migration 00001 sets it.
	applicationID = 0x70676673
	// migrationRetry is how often a process asks for the lock of another one that migrates.
	migrationRetry = 20 * time.Millisecond
	migrationLock  = "migration.lock"
)

// ours refuses a database of another program.
func ours(c *conn, path string) error {
	// One question, for the file may become a ledger between two.
	foreign, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name <> ?1 AND tbl_name <> ?1 AND name NOT LIKE 'sqlite_%' AND "+
		"(SELECT application_id FROM pragma_application_id) <> ?2", goose.DefaultTablename, int64(applicationID))
	if err == nil && foreign > 0 {
		err = fmt.Errorf("ledger %s: %w but another program's database: name another file", path, ErrNotLedger)
	}
	return err
}

// version returns which migrations a file has had; 0 if it has had none.
func version(c *conn) (int64, error) {
	found, err := c.number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", goose.DefaultTablename)
	if err != nil || found == 0 {
		return 0, err
	}
	return c.number("SELECT coalesce(max(version_id), 0) FROM " + goose.DefaultTablename)
}

// upToDate makes sure that a file has WAL mode and all migrations. Only one process does at a time.
func upToDate(ctx context.Context, c *conn, path string, busy time.Duration) error {
	v, err := version(c)
	if err != nil {
		return err
	}
	if v > schemaVersion {
		return newer(path, v)
	}
	mode, err := journal(c, "PRAGMA journal_mode")
	if err != nil || v == schemaVersion && mode == wal {
		return err
	}
	folder, err := ownersFolder(path, true)
	if err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, busy)
	defer stop()
	lock := flock.New(filepath.Join(folder, migrationLock), flock.SetPermissions(fileMode))
	if _, err := lock.TryLockContext(waiting, migrationRetry); err != nil {
		return fmt.Errorf("ledger %s: %w, which brings it up to date: try again later (%w)", path, ErrLocked, err)
	}
	defer lock.Close()
	if err := logAhead(waiting, c); err != nil {
		return err
	}
	if made, err := establish(ctx, c); made || err != nil {
		return err
	}
	return migrate(ctx, path, busy, schemaVersion)
}

// wal is the journal's mode.
const wal = "wal"

// journal asks for the journal's mode, or sets it.
func journal(c *conn, query string) (string, error) {
	r, err := c.rows(query)
	if err != nil {
		return "", err
	}
	defer r.close()
	if ok, err := r.next(); !ok || err != nil {
		return "", errors.Join(err, errors.New("the journal's mode is unknown"))
	}
	return r.text(), r.err
}

// logAhead sets the mode of the journal, which the file keeps. SQLite does not wait for those who read the file at that
// moment.
func logAhead(ctx context.Context, c *conn) error {
	retry := time.NewTicker(migrationRetry)
	defer retry.Stop()
	for {
		mode, err := journal(c, "PRAGMA journal_mode = WAL")
		switch {
		case err == nil && mode != wal:
			return fmt.Errorf("the journal's mode is %q: a ledger needs a local disk", mode)
		case err == nil || primary(err) != codeBusy:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}

// migrate brings a file up to a version.
func migrate(ctx context.Context, path string, busy time.Duration, to int64) error {
	return migrateWith(ctx, address(path, busy, url.Values{"mode": {"rw"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"}}), to)
}

// migrateWith brings the database of an address, as the driver reads it, up to a version.
func migrateWith(ctx context.Context, at string, to int64) (err error) {
	connector, err := sqlite.NewConnector(at)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	folder, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, to)
	return err
}

func newer(path string, v int64) error {
	return fmt.Errorf("ledger %s: %w: its schema is %d, this one knows %d; use that version", path, ErrNewer, v, schemaVersion)
}
