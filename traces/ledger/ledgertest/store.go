package ledgertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// Stored returns the bytes of the store's files, the write-ahead log included; none if the tests run with PostgreSQL.
func (s *Store) Stored() (text []byte) {
	s.tb.Helper()
	path, isFile := strings.CutPrefix(s.url, "sqlite:")
	if !isFile {
		return nil
	}
	for _, suffix := range []string{"", "-wal"} {
		part, err := os.ReadFile(path + suffix)
		if !errors.Is(err, os.ErrNotExist) {
			check.NoError(s.tb, err)
		}
		text = append(text, part...)
	}
	return text
}

// An Op is a place at which a [Store] can fail.
type Op string

// The places. The name of a write is its method's.
const (
	Read        Op = "read"   // in a View or a ReadCommitted, before its function is called
	Begin       Op = "begin"  // in an Update, before its function is called
	Commit      Op = "commit" // in an Update, before anything is durable
	Committed   Op = "committed"
	AddEntry    Op = "AddEntry"
	AddRequest  Op = "AddRequest"
	PutRequest  Op = "PutRequest"
	PutBlob     Op = "PutBlob"
	PutToken    Op = "PutToken"
	PutDelivery Op = "PutDelivery"
	Delivered   Op = "SetDelivered"
)

// A Store is a store as one process of a test has it open. It fails at the places that the test
// chooses.
type Store struct {
	ledger.Store

	// Fail is called at each place, with the number of times that this process was there, from 1.
	// The operation returns its error. At Committed the rows are durable already: an error stands
	// for a process that ended before it learned of the commit. Set Fail before the store is used,
	// or between two updates.
	Fail func(op Op, n int) error

	tb  testing.TB
	url string

	mu       sync.Mutex // guards the fields below
	times    map[Op]int
	owners   []string
	releases []func() error
}

// NewStore makes a store in a file of its own, or in a database if the tests run with PostgreSQL.
func NewStore(tb testing.TB) *Store {
	tb.Helper()
	url := newDatabase(tb)
	if url == "" {
		url = "sqlite:" + filepath.Join(folder(tb), "pgfsm.db")
	}
	return newStore(tb, url)
}

// OpenURL opens a store to write.
func OpenURL(tb testing.TB, url string) ledger.Store {
	tb.Helper()
	store, err := stores.Open(url, stores.ToWrite)
	check.NoError(tb, err)
	return store
}

func newStore(tb testing.TB, url string) *Store {
	tb.Helper()
	s := &Store{Store: OpenURL(tb, url), tb: tb, url: url, times: make(map[Op]int)}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return s
}

// Open opens the store as another process would, with no Fail.
func (s *Store) Open() *Store { return newStore(s.tb, s.url) }

// Copy returns a separate store with the same rows. It skips a test that runs with PostgreSQL.
func (s *Store) Copy(tb testing.TB) *Store {
	tb.Helper()
	path, inFile := strings.CutPrefix(s.url, "sqlite:")
	if !inFile {
		tb.Skip("only files are copied")
	}
	copyPath := filepath.Join(folder(tb), "pgfsm.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(path + suffix)
		check.NoError(tb, errors.Join(err, os.WriteFile(copyPath+suffix, text, 0o600)))
	}
	return newStore(tb, "sqlite:"+copyPath)
}

// FailAt returns a [Store.Fail] that fails when the process is at a place for the nth time, or each
// time if n is 0.
func FailAt(place Op, n int, err error) func(Op, int) error {
	return func(at Op, times int) error {
		if at == place && (n == 0 || n == times) {
			return err
		}
		return nil
	}
}

// Crash simulates the end of the process: the store is closed, and its owners are gone.
func (s *Store) Crash() {
	if err := s.Close(); err != nil {
		s.tb.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(s.url, "sqlite:") {
		for _, release := range s.releases {
			_ = release() // releasing a lock twice is harmless
		}
	} else if err := endLeases(s.url, s.owners); err != nil {
		s.tb.Error(err)
	}
}

// AcquireOwnership implements [ledger.Store.AcquireOwnership].
func (s *Store) AcquireOwnership(ctx context.Context, owner string) (func() error, error) {
	release, err := s.Store.AcquireOwnership(ctx, owner)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners, s.releases = append(s.owners, owner), append(s.releases, release)
	return release, nil
}

// View implements [ledger.Store.View].
func (s *Store) View(ctx context.Context, do func(ledger.Reader) error) error {
	if err := s.reach(Read); err != nil {
		return err
	}
	return s.Store.View(ctx, do)
}

// ReadCommitted implements [ledger.Store.ReadCommitted].
func (s *Store) ReadCommitted(ctx context.Context, do func(ledger.Reader) error) error {
	if err := s.reach(Read); err != nil {
		return err
	}
	return s.Store.ReadCommitted(ctx, do)
}

// Update implements [ledger.Store.Update].
func (s *Store) Update(ctx context.Context, do func(ledger.Tx) error, ahead ...func(ledger.Reader)) error {
	if err := s.reach(Begin); err != nil {
		return err
	}
	err := s.Store.Update(ctx, func(tx ledger.Tx) error {
		t := &failingTx{Tx: tx, store: s}
		if err := do(t); err != nil {
			return err
		}
		if t.err != nil {
			return t.err
		}
		return s.reach(Commit)
	}, ahead...)
	if err != nil {
		return err
	}
	return s.reach(Committed)
}

// reach counts a visit of a place, and fails there if the test wants it.
func (s *Store) reach(op Op) error {
	s.mu.Lock()
	s.times[op]++
	n := s.times[op]
	s.mu.Unlock()

	if s.Fail == nil {
		return nil
	}
	return s.Fail(op, n)
}

// A failingTx writes until a write is to fail. From then on it writes nothing.
type failingTx struct {
	ledger.Tx
	store *Store
	err   error
}

func (t *failingTx) write(op Op, do func() error) error {
	if t.err == nil {
		t.err = t.store.reach(op)
	}
	if t.err != nil {
		return t.err
	}
	return do()
}

func (t *failingTx) AddEntry(e ledger.Entry, hashes []tlog.Hash) error {
	return t.write(AddEntry, func() error { return t.Tx.AddEntry(e, hashes) })
}

func (t *failingTx) AddRun(r ledger.RunRow) error {
	return t.write(AddRequest, func() error { return t.Tx.AddRun(r) })
}

func (t *failingTx) PutRun(r ledger.RunRow) error {
	return t.write(PutRequest, func() error { return t.Tx.PutRun(r) })
}

func (t *failingTx) PutBlob(b ledger.Blob) error {
	return t.write(PutBlob, func() error { return t.Tx.PutBlob(b) })
}

func (t *failingTx) PutToken(k ledger.Token) error {
	return t.write(PutToken, func() error { return t.Tx.PutToken(k) })
}

func (t *failingTx) PutDelivery(d ledger.Delivery) error {
	return t.write(PutDelivery, func() error { return t.Tx.PutDelivery(d) })
}

func (t *failingTx) SetNextDelivery(hook string, next int64) error {
	return t.write(Delivered, func() error { return t.Tx.SetNextDelivery(hook, next) })
}
