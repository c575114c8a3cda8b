package sqlite

import (
	"context"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// schemaScript makes a ledger of an empty file, in one transaction.
//
//go:embed schema.sql
var schemaScript string

const (
	// schemaVersion is the version of schemaScript.
	schemaVersion = 1
	// applicationID marks the file as a ledger.
	applicationID = 0x70676673
	// schemaRetry is how often a process asks for the lock of another one that makes the file.
	schemaRetry = 20 * time.Millisecond
	schemaLock  = "schema.lock"
)

// ours refuses a database of another program.
func ours(c *conn, path string) error {
	// One question, for the file may become a ledger between two.
	foreign, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND "+
		"(SELECT application_id FROM pragma_application_id) <> ?", int64(applicationID))
	if err == nil && foreign > 0 {
		err = fmt.Errorf("ledger %s: %w but another program's database: name another file", path, ErrNotLedger)
	}
	return err
}

// empty reports whether nothing is in a file.
func empty(c *conn) (bool, error) {
	n, err := c.number("SELECT count(*) FROM sqlite_schema")
	return n == 0, err
}

// version returns the version of a file's schema; 0 if it has none.
func version(c *conn) (int64, error) { return c.number("SELECT user_version FROM pragma_user_version") }

// today refuses a file of another version.
func today(c *conn, path string) error {
	v, err := version(c)
	if err != nil || v == schemaVersion {
		return err
	}
	kind := ErrNewer
	if v < schemaVersion {
		kind = ErrOlder
	}
	return fmt.Errorf("ledger %s: %w: its schema is %d, this one knows %d; use that version", path, kind, v, schemaVersion)
}

// establish makes a ledger of an empty file, and makes sure that a file has WAL mode and today's version. Only one process does at a time.
func establish(ctx context.Context, c *conn, path string, busy time.Duration) error {
	blank, err := empty(c)
	if err != nil {
		return err
	}
	if !blank {
		if err := today(c, path); err != nil {
			return err
		}
	}
	mode, err := journal(c, "PRAGMA journal_mode")
	if err != nil || !blank && mode == wal {
		return err
	}
	folder, err := ownersFolder(path, true)
	if err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, busy)
	defer stop()
	lock := flock.New(filepath.Join(folder, schemaLock), flock.SetPermissions(fileMode))
	if _, err := lock.TryLockContext(waiting, schemaRetry); err != nil {
		return fmt.Errorf("ledger %s: %w, which makes it: try again later (%w)", path, ErrLocked, err)
	}
	defer lock.Close()
	if err := logAhead(waiting, c); err != nil {
		return err
	}
	if blank, err = empty(c); err != nil || !blank {
		return errors.Join(err, today(c, path))
	}
	if err := writeSchema(ctx, c); err != nil {
		c.rollback()
		return fmt.Errorf("a new ledger: %w", err)
	}
	return nil
}

// writeSchema runs schemaScript. It is not kept prepared: it runs once.
func writeSchema(ctx context.Context, c *conn) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(ctx, schemaScript, nil)
	return err
}

// newSchema is that of a file that was just made.
var newSchema = sync.OnceValues(func() (_ []object, err error) {
	c, err := dial(context.Background(), "/pgfsm-blank", BusyTimeout, map[string][]string{"vfs": {"memdb"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := writeSchema(context.Background(), c); err != nil {
		return nil, err
	}
	return schemaOf(c)
})

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
	retry := time.NewTicker(schemaRetry)
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
