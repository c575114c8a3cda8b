package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

const (
	// BusyTimeout bounds the time that a writer waits for the writers of other processes. A commit
	// takes milliseconds; a longer wait means that a process hangs.
	BusyTimeout = 10 * time.Second
	// cacheKiB is the size of the writer's cache: it holds the pages at the ends of all indexes of
	// a large ledger.
	cacheKiB = 16 << 10
	// keptLog is the number of bytes of the write-ahead log's file that stay after a reset:
	// overwriting is faster than growing.
	keptLog = 16 << 20
)

// A Store is a [ledger.Store] in a file. Its methods can be called at the same time. The function
// of a transaction must not begin another transaction: it would wait for itself.
type Store struct {
	path     string
	dialect  sqlrows.Dialect
	file     identity
	readOnly bool
	frozen   *frozen // set if the file is read without locks
	busy     time.Duration

	writing chan struct{} // contains one value while a goroutine writes
	writers *sql.DB       // pool of one connection
	writer  *sql.Conn
	writes  *executor
	readers *sql.DB
	glances *executor
	reading chan struct{} // contains one value for each reader
	closed  chan struct{}
	close   sync.Once

	written int64 // attempts to commit a write; guarded by writing
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger to read and write. If there is no file, Open makes one that only this user
// may read.
func Open(path string) (*Store, error) { return openWaiting(path, BusyTimeout) }

// openWaiting opens a ledger whose writers wait at most so long for those of other processes.
func openWaiting(path string, busy time.Duration) (*Store, error) {
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	// This comes before the first connection, so that nothing is recorded if the connection finds
	// another file.
	file, err := identifyFile(path, os.Lstat)
	if err != nil {
		return nil, err
	}
	s := newStore(path, file, busy)
	if err := s.openReaders(url.Values{"mode": {"rw"}, "_synchronous": {"FULL"}}); err != nil {
		return nil, err
	}
	if err := s.openWriter(); err != nil {
		return nil, explainError(path, errors.Join(err, s.readers.Close()))
	}
	return s, nil
}

func newStore(path string, file identity, busy time.Duration) *Store {
	return &Store{
		path:    path,
		dialect: newDialect(path),
		file:    file,
		busy:    busy,
		writing: make(chan struct{}, 1),
		reading: make(chan struct{}, sqlrows.MaxReaders),
		closed:  make(chan struct{}),
	}
}

// openWriter connects the writer, and makes a ledger in the file if the file is empty.
func (s *Store) openWriter() (err error) {
	s.writers, err = openPool(s.file, s.busy, url.Values{
		"mode": {"rw"}, "_synchronous": {"FULL"}, "_pragma": {
			fmt.Sprintf("cache_size(-%d)", cacheKiB), fmt.Sprintf("journal_size_limit(%d)", keptLog),
			"secure_delete(1)", // overwrites removed content on a prune
		},
	})
	if err != nil {
		return err
	}
	s.writers.SetMaxOpenConns(1)
	if err := s.prepareWriter(); err != nil {
		return errors.Join(err, s.writers.Close())
	}
	if s.writer, err = s.writers.Conn(context.Background()); err != nil {
		return errors.Join(err, s.writers.Close())
	}
	s.writes = newExecutor(s.writer)
	return nil
}

// openReaders opens the file for readers. The pool has no bound of its own: the channel reading
// bounds it, and a context ends the wait for that channel without a goroutine for each query.
func (s *Store) openReaders(settings url.Values) (err error) {
	settings.Set("_query_only", "1")
	if s.readers, err = openPool(s.file, s.busy, settings); err != nil {
		return err
	}
	s.readers.SetMaxIdleConns(sqlrows.MaxReaders)
	s.glances = newExecutor(s.readers)
	return nil
}

// prepareWriter makes sure that the connection's file is a ledger of today's schema, in WAL mode.
func (s *Store) prepareWriter() error {
	if err := checkApplication(s.writers, s.path); err != nil {
		return err
	}
	if err := createLedger(s.writers, s.path, s.busy); err != nil {
		return err
	}
	return checkWritable(s.writers)
}

// checkWritable makes sure that the file can be written. SQLite opens a read-only file without an
// error and only a write fails, so checkWritable writes and rolls back. It returns no error if
// another program is writing at the moment.
func checkWritable(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec("DELETE FROM pruning"); resultCode(err) != codeBusy {
		return err
	}
	return nil
}

// Path returns the file's absolute name.
func (s *Store) Path() string { return s.path }

// Update implements [ledger.Store.Update]. If the flush of a commit fails, Update undoes the commit
// and returns the error. If the machine then loses power before the next commit, the bytes of the
// undone commit may be complete on the disk, and it takes effect.
func (s *Store) Update(ctx context.Context, do func(ledger.Tx) error, _ ...func(ledger.Reader)) error {
	if s.readOnly {
		return fmt.Errorf("ledger %s: %w: it was opened to read only", s.path, ErrReadOnly)
	}
	if err := sqlrows.AcquireSlot(ctx, s.writing, s.closed); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	t := s.newTx(ctx, s.writes)
	defer func() { // also if do panics
		t.Finish()
		if !t.committed {
			// The only possible error is that there is no open transaction.
			_, _ = t.source.exec(context.Background(), "ROLLBACK")
		}
	}()

	// If the context ends at that moment, the transaction may have begun despite the error.
	if _, err := t.source.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explainError(s.path, err)
	}
	if err := do(t); err != nil {
		return err
	}

	return s.commit(t)
}

func (s *Store) commit(t *tx) error {
	if err := t.Usable(); err != nil {
		return err
	}
	t.Finish()
	// A record in a file that was moved away is lost: a denial there would have no effect.
	if err := s.file.checkUnmoved(); err != nil {
		return err
	}
	if t.Wrote() {
		s.written++
	}
	// COMMIT does not use the context: whether the transaction is committed must not be in doubt.
	if _, err := t.source.exec(context.Background(), "COMMIT"); err != nil {
		return explainError(s.path, err)
	}
	t.committed = true
	if t.pruned {
		s.emptyLog(t)
	}
	return nil
}

// emptyLog moves the write-ahead log into the file, because its frames still contain pruned
// content. While another connection reads, the log stays; waiting would block all writers, too. The
// prune stays committed in either case.
func (s *Store) emptyLog(t *tx) {
	for _, query := range []string{
		"PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(TRUNCATE)",
		fmt.Sprintf("PRAGMA busy_timeout = %d", s.busy.Milliseconds()),
	} {
		if c, err := t.source.query(context.Background(), nil, query); err == nil {
			_, _ = c.scanNext()
			c.rows.Close()
		}
	}
}

// Now implements [ledger.Store.Now]. All processes of the file run on one machine.
func (s *Store) Now() time.Time { return time.Now() }

// View implements [ledger.Store.View].
func (s *Store) View(ctx context.Context, do func(ledger.Reader) error) error {
	return s.readTx(ctx, func(t *tx) error {
		snapshot, err := s.readers.Begin()
		if err != nil {
			return explainError(s.path, err)
		}
		defer snapshot.Rollback() // ends the snapshot; there is nothing to undo
		t.source.executor = newExecutor(view{snapshot, s.glances})
		defer t.Finish()
		return do(t)
	})
}

// ReadCommitted implements [ledger.Store.ReadCommitted]. Outside of a transaction each query is a
// transaction of its own.
func (s *Store) ReadCommitted(ctx context.Context, do func(ledger.Reader) error) error {
	return s.readTx(ctx, func(t *tx) error {
		defer t.Finish()
		return do(t)
	})
}

// readTx calls do with a transaction that reads.
func (s *Store) readTx(ctx context.Context, do func(*tx) error) error {
	if err := sqlrows.AcquireSlot(ctx, s.reading, s.closed); err != nil {
		return err
	}
	defer func() { <-s.reading }()
	if err := do(s.newTx(ctx, s.glances)); err != nil {
		return err
	}
	if err := s.file.checkUnmoved(); err != nil {
		return err
	}
	return s.frozen.checkUnchanged()
}

// Close waits for the writer, ends the connections, and moves the write-ahead log into the file if
// no other process has it open. Readers end on their own.
func (s *Store) Close() (err error) {
	s.close.Do(func() {
		close(s.closed)
		err = s.readers.Close()
		if !s.readOnly {
			s.writing <- struct{}{} // never received again: no goroutine writes any more
			s.writes.closeStatements()
			err = errors.Join(err, s.writer.Close(), s.writers.Close())
		}
		err = explainError(s.path, err)
	})
	return err
}
