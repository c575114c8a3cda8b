package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// A Store is a [ledger.Store] in a database. Its methods can be called at the same time. The
// function of a transaction must not begin another transaction that writes: it would wait for
// itself.
type Store struct {
	pool     *pgxpool.Pool
	readOnly bool
	lease    time.Duration
	wait     time.Duration // longest wait for an answer of the database
	writing  chan struct{} // contains one value while a goroutine writes
	reading  chan struct{} // contains one value for each reader
	closed   chan struct{}
	close    sync.Once

	ahead atomic.Int64 // nanoseconds by which the database's clock is ahead of this machine's
	last  atomic.Pointer[acknowledged]
	final atomic.Pointer[error] // error that every later operation returns

	owners  []string // owners with a lease of this store; guarded by writing
	commits int64    // number of begun transactions; guarded by writing
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger to read and write. The database must contain a ledger: see [Migrate].
func Open(url string) (*Store, error) { return openStore(url, false) }

// OpenReadOnly opens a ledger to read, also on a standby.
func OpenReadOnly(url string) (*Store, error) { return openStore(url, true) }

func openStore(url string, readOnly bool) (*Store, error) {
	c, lease, err := parseURL(url)
	if err != nil {
		return nil, err
	}

	s := &Store{
		readOnly: readOnly,
		lease:    lease,
		wait:     2 * lease,
		writing:  make(chan struct{}, 1),
		reading:  make(chan struct{}, sqlrows.MaxReaders),
		closed:   make(chan struct{}),
	}

	s.configure(c)
	ctx, stop := context.WithTimeoutCause(context.Background(), s.wait, errNoAnswer)
	defer stop()
	if s.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, explainError(ctx, err)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		s.pool.Close()
		return nil, explainError(ctx, err)
	}

	conn.Release()
	return s, nil
}

// checkUsable returns the error that ended the store; nil if the store is usable.
func (s *Store) checkUsable() error {
	select {
	case <-s.closed:
		return sqlrows.ErrClosed
	default:
	}
	if final := s.final.Load(); final != nil {
		return *final
	}
	return nil
}

// endWith ends the store for good with an error, and returns the error of the first call.
func (s *Store) endWith(err error) error {
	s.final.CompareAndSwap(nil, &err)
	return *s.final.Load()
}

// acquireSlot waits until there is room in a channel, and sends one value to it, unless the store
// has ended.
func (s *Store) acquireSlot(ctx context.Context, room chan struct{}) error {
	if err := sqlrows.AcquireSlot(ctx, room, s.closed); err != nil {
		return err
	}
	if err := s.checkUsable(); err != nil {
		<-room
		return err
	}
	return nil
}

// View implements [ledger.Store.View]. Its first read fixes the state that it sees.
func (s *Store) View(ctx context.Context, do func(ledger.Reader) error) error {
	return s.readTx(ctx, &executor{begin: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", always: true}, do)
}

// ReadCommitted implements [ledger.Store.ReadCommitted]. A cursor reads a sequence, so a sequence
// begins a transaction; each query in it sees all earlier commits.
func (s *Store) ReadCommitted(ctx context.Context, do func(ledger.Reader) error) error {
	return s.readTx(ctx, &executor{begin: "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"}, do)
}

func (s *Store) readTx(ctx context.Context, exec *executor, do func(ledger.Reader) error) error {
	if err := s.acquireSlot(ctx, s.reading); err != nil {
		return err
	}
	defer func() { <-s.reading }()
	exec.ctx, exec.pool, exec.wait = ctx, s.pool, s.wait
	defer exec.release()
	t := newTx(ctx, exec)
	defer t.Finish()
	return do(t)
}

// Update implements [ledger.Store.Update]. The reads of ahead are sent with the statements that begin
// the transaction.
func (s *Store) Update(ctx context.Context, do func(ledger.Tx) error, ahead ...func(ledger.Reader)) error {
	if s.readOnly {
		return errReadOnly
	}
	if err := s.acquireSlot(ctx, s.writing); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	exec := &executor{ctx: ctx, pool: s.pool, wait: s.wait}
	defer exec.release() // also if do panics
	t := newTx(ctx, exec)
	defer t.Finish()
	if err := s.beginWrite(t, planReads(ctx, ahead)); err != nil {
		return err
	}
	if err := do(t); err != nil {
		return err
	}
	return s.commit(t)
}

// Close waits for the writer and the readers.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.writing <- struct{}{} // never received again: no goroutine writes any more
		s.pool.Close()
	})
	return nil
}
