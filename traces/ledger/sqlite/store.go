package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/traces/ledger"
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
	file     identity
	readOnly bool
	frozen   *frozen // set if the file is read without locks
	settings url.Values
	busy     time.Duration

	writing chan struct{} // contains one value while a goroutine writes
	writer  *conn
	reading chan struct{} // as many values as there are readers
	mu      sync.Mutex    // guards idle
	idle    []*conn

	closed   chan struct{}
	close    sync.Once
	closeErr error

	commits atomic.Int64
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger to read and write, and makes the file, which only this user may read then, if there is none.
func Open(path string, o Options) (*Store, error) {
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	s := newStore(path, cmp.Or(o.BusyTimeout, BusyTimeout))
	// This comes before the first connection, so that nothing is recorded if the connection finds another file.
	if s.file, err = identify(path, os.Lstat); err != nil {
		return nil, err
	}
	s.settings = url.Values{"mode": {"rw"}, "_synchronous": {"FULL"}}
	if err := s.openWriter(); err != nil {
		return nil, explained(path, err)
	}
	return s, nil
}

func newStore(path string, busy time.Duration) *Store {
	return &Store{
		path: path, busy: busy, writing: make(chan struct{}, 1), reading: make(chan struct{}, maxReaders), closed: make(chan struct{}),
	}
}

// openWriter connects the writer, and makes a ledger of the file with it if nothing is in it.
func (s *Store) openWriter() error {
	ctx := context.Background()
	w, err := dial(ctx, s.path, s.busy, url.Values{
		"mode": {"rw"}, "_synchronous": {"FULL"}, "_pragma": {
			fmt.Sprintf("cache_size(-%d)", cacheKiB), fmt.Sprintf("journal_size_limit(%d)", keptLog),
		},
	})
	if err != nil {
		return err
	}
	if err := s.ready(ctx, w); err != nil {
		return errors.Join(err, w.close())
	}
	s.writer = w
	return nil
}

// ready makes sure that the connection's file is a ledger of today's schema, in WAL mode.
func (s *Store) ready(ctx context.Context, w *conn) error {
	if err := ours(w, s.path); err != nil {
		return err
	}
	if err := establish(ctx, w, s.path, s.busy); err != nil {
		return err
	}
	if err := unaltered(w, s.path); err != nil {
		return err
	}
	return writable(ctx, w)
}

// writable makes sure that the file can be written. SQLite opens a read-only file without an error; only a write fails, so writable writes and rolls back.
// If another program writes at the moment, that is no error.
func writable(ctx context.Context, w *conn) error {
	if _, err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		if primary(err) == codeBusy {
			return nil
		}
		return err
	}
	defer w.rollback()
	_, err := w.exec(ctx, "INSERT INTO pruning (since) VALUES (1)")
	return err
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
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	if _, err := s.writer.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explained(s.path, err)
	}
	t := &tx{c: s.writer, ctx: ctx, path: s.path}
	defer func() { // also when do panics
		t.end()
		if !t.committed {
			s.writer.rollback()
		}
	}()
	if err := do(t); err != nil {
		return err
	}
	return s.commit(t)
}

func (s *Store) commit(t *tx) error {
	if err := t.usable(); err != nil {
		return err
	}
	t.end()
	// A record in a file that was moved away is lost: a denial there would have no effect.
	if err := s.file.same(); err != nil {
		return err
	}
	// Not with the context: whether it is committed must not be in doubt.
	if _, err := s.writer.exec(context.Background(), "COMMIT"); err != nil {
		return explained(s.path, err)
	}
	t.committed = true
	if t.wrote {
		s.commits.Add(1)
	}
	return nil
}

// rollback ends a transaction, if SQLite has not ended it already.
func (c *conn) rollback() {
	// The only error is that there is no transaction any more.
	_, _ = c.exec(context.Background(), "ROLLBACK")
}

// lock waits until no goroutine of this process writes.
func (s *Store) lock(ctx context.Context) error { return s.enter(ctx, s.writing) }

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
	return s.look(ctx, func(t *tx) error {
		if _, err := t.c.exec(ctx, "BEGIN"); err != nil {
			return explained(s.path, err)
		}
		defer func() {
			t.end()
			t.c.rollback() // there is nothing to undo; it ends the snapshot
		}()
		return do(t)
	})
}

// Glance is [ledger.Store.Glance]. Outside of a transaction each query is one of its own.
func (s *Store) Glance(ctx context.Context, do func(ledger.Reader) error) error {
	return s.look(ctx, func(t *tx) error {
		defer t.end()
		return do(t)
	})
}

// look reads with a connection that no other goroutine uses.
func (s *Store) look(ctx context.Context, do func(*tx) error) error {
	c, err := s.borrow(ctx)
	if err != nil {
		return err
	}
	defer s.giveBack(c)
	if err := do(&tx{c: c, ctx: ctx, path: s.path}); err != nil {
		return err
	}
	if err := s.file.same(); err != nil {
		return err
	}
	return s.frozen.same()
}

// borrow returns a connection to read with.
func (s *Store) borrow(ctx context.Context) (*conn, error) {
	if err := s.enter(ctx, s.reading); err != nil {
		return nil, err
	}
	c, err := s.reader(ctx)
	if err != nil {
		<-s.reading
	}
	return c, err
}

func (s *Store) giveBack(c *conn) {
	s.put(c)
	<-s.reading
}

// reader returns an idle connection, or a new one.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil, ErrClosed
	default:
	}
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, nil
	}
	if err := s.file.same(); err != nil { // another file is not even opened
		return nil, err
	}
	settings := url.Values{"_query_only": {"1"}}
	for key, values := range s.settings { // a copy, in any order
		settings[key] = values
	}
	c, err := dial(ctx, s.path, s.busy, settings)
	return c, explained(s.path, err)
}

// put keeps a connection for the next reader.
func (s *Store) put(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		c.close()
	default:
		s.idle = append(s.idle, c)
	}
}

// Close waits for the writer, ends the connections, and moves the write-ahead log into the file if no other process has it
// open. Readers end on their own.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.writing <- struct{}{} // for ever: nobody writes any more
		var errs []error
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.idle {
			errs = append(errs, c.close())
		}
		if s.writer != nil {
			errs = append(errs, s.writer.close())
		}
		s.idle, s.closeErr = nil, explained(s.path, errors.Join(errs...))
	})
	return s.closeErr
}
