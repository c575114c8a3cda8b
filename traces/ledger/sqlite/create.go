package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// schemaScript makes a ledger of an empty file, in one transaction.
//
//go:embed schema.sql
var schemaScript string

const (
	// schemaVersion is the version of schemaScript.
	schemaVersion = 8
	// applicationID marks the file as a ledger.
	applicationID = 0x70676673
	// schemaRetry is the time between attempts to lock the file while another process makes the
	// ledger.
	schemaRetry = 20 * time.Millisecond
	schemaLock  = "schema.lock"
)

// selectNumber returns the number that a query selects.
func selectNumber(db *sql.DB, query string, args ...any) (n int64, err error) {
	err = db.QueryRow(query, args...).Scan(&n)
	return n, err
}

// checkApplication rejects a database of another program.
func checkApplication(db *sql.DB, path string) error {
	// This is one query, because the file may become a ledger between two.
	foreign, err := selectNumber(db, "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND "+
		"(SELECT application_id FROM pragma_application_id) <> ?", applicationID)
	if err != nil {
		return err
	}
	if foreign > 0 {
		return fmt.Errorf("ledger %s: %w but another program's database: name another file", path, ErrNotLedger)
	}
	return nil
}

// isEmpty reports whether a file contains nothing.
func isEmpty(db *sql.DB) (bool, error) {
	n, err := selectNumber(db, "SELECT count(*) FROM sqlite_schema")
	return n == 0, err
}

// readVersion returns the version of a file's schema; 0 if it has none.
func readVersion(db *sql.DB) (int64, error) {
	return selectNumber(db, "SELECT user_version FROM pragma_user_version")
}

// checkVersion rejects a file of another version.
func checkVersion(db *sql.DB, path string) error {
	v, err := readVersion(db)
	if err != nil || v == schemaVersion {
		return err
	}
	kind := ErrNewer
	if v < schemaVersion {
		kind = ErrOlder
	}
	return fmt.Errorf("ledger %s: %w: its schema is %d, this one knows %d; use that version", path, kind, v,
		schemaVersion)
}

// createLedger makes a ledger in an empty file, and makes sure that the file has WAL mode and
// today's version. Only one process does so at a time.
func createLedger(db *sql.DB, path string, busy time.Duration) error {
	blank, err := isEmpty(db)
	if err != nil {
		return err
	}

	if !blank {
		if err := checkVersion(db, path); err != nil {
			return err
		}
	}

	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || !blank && mode == wal {
		return err
	}

	folder, err := ownersFolder(path, true)
	if err != nil {
		return err
	}

	// Another process may be making the ledger: wait for it.
	waiting, stop := context.WithTimeout(context.Background(), busy)
	defer stop()
	lock := flock.New(filepath.Join(folder, schemaLock), flock.SetPermissions(fileMode))
	if _, err := lock.TryLockContext(waiting, schemaRetry); err != nil {
		return fmt.Errorf("ledger %s: %w, which makes it: try again later (%w)", path, ErrLocked, err)
	}
	defer lock.Close()
	if err := logAhead(waiting, db); err != nil {
		return err
	}
	// If that process made the ledger meanwhile, the file is not empty any more.
	if blank, err = isEmpty(db); err != nil || !blank {
		return errors.Join(err, checkVersion(db, path))
	}
	if _, err := db.Exec(schemaScript); err != nil {
		// The only possible error is that SQLite has ended the transaction already.
		_, _ = db.Exec("ROLLBACK")
		return fmt.Errorf("a new ledger: %w", err)
	}

	return nil
}

// wal is the mode of the journal.
const wal = "wal"

// logAhead sets the mode of the journal, which the file keeps. SQLite does not wait for current
// readers of the file.
func logAhead(ctx context.Context, db *sql.DB) error {
	retry := time.NewTicker(schemaRetry)
	defer retry.Stop()
	for {
		var mode string
		err := db.QueryRow("PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode != wal:
			return fmt.Errorf("the journal's mode is %q: a ledger needs a local disk", mode)
		case err == nil || resultCode(err) != codeBusy:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}
