package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

const (
	// BusyTimeout is how long a writer waits for the writers of other processes. A commit takes milliseconds; a writer that waits longer waits for a
	// process that hangs.
	BusyTimeout = 10 * time.Second
	// maxReaders bounds the connections that read; each has a cache of 2 MB.
	maxReaders = 8
	// cacheKiB is the writer's cache: the pages at the ends of all indexes of a large ledger.
	cacheKiB = 16 << 10
	// keptLog is how many bytes of the write-ahead log's file stay when it begins again: overwriting is faster than growing.
	keptLog = 16 << 20
)

// Options are for tests and for unusual machines. The zero Options are right.
type Options struct {
	BusyTimeout time.Duration // 0: the constant
}

// Stats counts what a Store has done since it was opened.
type Stats struct {
	// Commits is how many transactions were committed that wrote something. Each is one flush of the write-ahead log.
	Commits int64
}

// A Store is a [ledger.Store] in a file. Its methods can be called at the same time. A transaction must not begin another
// one in its function: it would wait for itself.
type Store struct {
	path     string
	dialect  sqlrows.Dialect
	file     identity
	readOnly bool
	frozen   *frozen // set if the file is read without locks
	busy     time.Duration

	writing chan struct{} // contains one value while a goroutine writes
	writers *sql.DB       // of one connection
	writer  *sql.Conn
	writes  *session
	readers *sql.DB
	glances *session
	reading chan struct{} // as many values as there are readers
	closed  chan struct{}
	close   sync.Once

	commits atomic.Int64
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger to read and write, and makes the file, which only this user may read then, if there is none.
func Open(path string, o Options) (*Store, error) {
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	// This comes before the first connection, so that nothing is recorded if the connection finds another file.
	file, err := identify(path, os.Lstat)
	if err != nil {
		return nil, err
	}
	s := newStore(path, file, cmp.Or(o.BusyTimeout, BusyTimeout))
	if err := s.openReaders(url.Values{"mode": {"rw"}, "_synchronous": {"FULL"}}); err != nil {
		return nil, err
	}
	if err := s.openWriter(); err != nil {
		return nil, explained(path, errors.Join(err, s.readers.Close()))
	}
	return s, nil
}

func newStore(path string, file identity, busy time.Duration) *Store {
	return &Store{
		path: path, dialect: dialect(path), file: file, busy: busy,
		writing: make(chan struct{}, 1), reading: make(chan struct{}, maxReaders), closed: make(chan struct{}),
	}
}

// openWriter connects the writer, and makes a ledger of the file with it if nothing is in it.
func (s *Store) openWriter() (err error) {
	s.writers, err = open(s.file, s.busy, url.Values{
		"mode": {"rw"}, "_synchronous": {"FULL"}, "_pragma": {
			fmt.Sprintf("cache_size(-%d)", cacheKiB), fmt.Sprintf("journal_size_limit(%d)", keptLog),
			"secure_delete(1)", // what a prune removes is overwritten
		},
	})
	if err != nil {
		return err
	}
	s.writers.SetMaxOpenConns(1)
	if err = s.ready(); err == nil {
		s.writer, err = s.writers.Conn(context.Background())
	}
	if err != nil {
		return errors.Join(err, s.writers.Close())
	}
	s.writes = newSession(s.writer)
	return nil
}

// openReaders opens the file for readers. The pool has no bound of its own: reading has it, and ends waits with contexts without
// a goroutine for each query.
func (s *Store) openReaders(settings url.Values) (err error) {
	settings.Set("_query_only", "1")
	if s.readers, err = open(s.file, s.busy, settings); err != nil {
		return err
	}
	s.readers.SetMaxIdleConns(maxReaders)
	s.glances = newSession(s.readers)
	return nil
}

// ready makes sure that the connection's file is a ledger of today's schema, in WAL mode.
func (s *Store) ready() error {
	if err := checkApplication(s.writers, s.path); err != nil {
		return err
	}
	if err := establish(s.writers, s.path, s.busy); err != nil {
		return err
	}
	if err := unaltered(s.writers, s.path); err != nil {
		return err
	}
	return writable(s.writers)
}

// writable makes sure that the file can be written. SQLite opens a read-only file without an error; only a write fails, so writable writes and rolls back.
// If another program writes at the moment, that is no error.
func writable(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec("INSERT INTO pruning (since) VALUES (1)"); primary(err) != codeBusy {
		return err
	}
	return nil
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.commits.Load()}
}

// Path returns the file's name, as it is found whatever the working directory is.
func (s *Store) Path() string { return s.path }

// Update is [ledger.Store.Update]. When the flush of a commit fails, the commit is undone and the error returned; should the
// machine lose power before the next commit, the bytes of the undone one may be found complete, and count.
func (s *Store) Update(ctx context.Context, do func(ledger.Tx) error) error {
	if s.readOnly {
		return fmt.Errorf("ledger %s: %w: it was opened to read only", s.path, ErrReadOnly)
	}
	if err := s.enter(ctx, s.writing); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	t := s.newTx(ctx, s.writes)
	defer func() { // also when do panics
		t.Finish()
		if !t.committed {
			// The only error is that there is no transaction, or none any more.
			_, _ = t.source.exec(context.Background(), "ROLLBACK")
		}
	}()
	// If the context ends at that moment, the transaction may have begun in spite of the error.
	if _, err := t.source.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explained(s.path, err)
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
	// Not with the context: whether it is committed must not be in doubt.
	if _, err := t.source.exec(context.Background(), "COMMIT"); err != nil {
		return explained(s.path, err)
	}
	t.committed = true
	if t.Wrote() {
		s.commits.Add(1)
	}
	if t.pruned {
		s.emptyLog(t)
	}
	return nil
}

// emptyLog moves the write-ahead log into the file, because its frames still have what a prune removed. While another connection reads,
// the log stays; waiting would keep all writers waiting, too. The prune is committed whatever comes of it.
func (s *Store) emptyLog(t *tx) {
	for _, query := range []string{
		"PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(TRUNCATE)", fmt.Sprintf("PRAGMA busy_timeout = %d", s.busy.Milliseconds()),
	} {
		if c, err := t.source.rows(context.Background(), nil, query); err == nil {
			_, _ = c.next()
			c.rows.Close()
		}
	}
}

// Now is [ledger.Store.Now]. All processes of the file are on one machine.
func (s *Store) Now() time.Time { return time.Now() }

// enter waits until a channel that holds a few values takes one more.
func (s *Store) enter(ctx context.Context, room chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return ErrClosed
	}
	select {
	case <-s.closed:
		<-room
		return ErrClosed
	default:
		return nil
	}
}

// View is [ledger.Store.View].
func (s *Store) View(ctx context.Context, do func(ledger.Reader) error) error {
	return s.view(ctx, func(t *tx) error {
		snapshot, err := s.readers.Begin()
		if err != nil {
			return explained(s.path, err)
		}
		defer snapshot.Rollback() // there is nothing to undo; it ends the snapshot
		t.source.session = newSession(view{snapshot, s.glances})
		defer t.Finish()
		return do(t)
	})
}

// Glance is [ledger.Store.Glance]. Outside of a transaction each query is one of its own.
func (s *Store) Glance(ctx context.Context, do func(ledger.Reader) error) error {
	return s.view(ctx, func(t *tx) error {
		defer t.Finish()
		return do(t)
	})
}

// view reads.
func (s *Store) view(ctx context.Context, do func(*tx) error) error {
	if err := s.enter(ctx, s.reading); err != nil {
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

// Close waits for the writer, ends the connections, and moves the write-ahead log into the file if no other process has it
// open. Readers end on their own.
func (s *Store) Close() (err error) {
	s.close.Do(func() {
		close(s.closed)
		err = s.readers.Close()
		if !s.readOnly {
			s.writing <- struct{}{} // for ever: nobody writes any more
			s.writes.close()
			err = errors.Join(err, s.writer.Close(), s.writers.Close())
		}
		err = explained(s.path, err)
	})
	return err
}
