package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"pgfsm/traces/ledger/tail"
)

const (
	// tickEvery is how often the process that holds the ledger checks whether another process waits.
	tickEvery = 25 * time.Millisecond
	// settleTicks is about how many ticks commits stay only in the tail while more arrive. A call that ends meanwhile is written to the file once.
	settleTicks = 8
	// settleFrom is how many commits are moved into the file without waiting, and settleMost how many in one transaction.
	settleFrom = 256
	settleMost = 512
	// Before the tail is restarted, commits that arrived meanwhile are moved, too: at most catchUps times, or until restartBelow commits are left. New
	// commits wait for the last ones.
	catchUps     = 4
	restartBelow = 16
	// idleTicks is after how many ticks without a commit the ledger is released.
	idleTicks = 4
	// afterBell is how long a process that released the ledger for another process does not take it again.
	afterBell = 200 * time.Millisecond
	// afterUseless is how long the ledger is not taken after the tail saved nothing.
	afterUseless = time.Second
	// afterFailing is how long the ledger is not taken after the tail could not be started. On a full disk, each try uses all free space for a moment.
	afterFailing = time.Minute
	// uselessFrom is how many reads must move the tail's commits before the tail counts as useless.
	uselessFrom = 8
	// lookAgain is how often a process that waits for the ledger tries again.
	lookAgain = 2 * time.Millisecond
	// maxKnown bounds the cache of runs, blobs and tokens while the ledger is held.
	maxKnown = 4096
)

// A tailing is a Store's use of its ledger's tail ([tail.File]). Each transaction holds the tail's shared lock while it begins. A Store that was opened
// with Options.Tail takes the exclusive lock for its first commit, and keeps the lock while commits follow: it holds the ledger. Then no other process
// reads or writes the ledger, and a commit is complete when it is in the tail. The Store moves commits into the file together, before another process can
// read the file.
type tailing struct {
	s      *Store
	wanted bool

	// updating contains one value while a goroutine commits, recovers the tail, or releases the ledger. Lock order: updating, Store.writing, mu.
	updating chan struct{}
	broken   error         // the content of the tail is unknown; the goroutine with updating reads it
	taken    chan struct{} // the ledger was taken
	looking  chan struct{} // contains one value while a waiting goroutine tries to get the lock
	ended    sync.WaitGroup

	mu      sync.RWMutex
	file    *tail.File
	shared  int  // transactions of this process that share
	locked  bool // the shared lock is held for these transactions
	busy    bool // the tail is being recovered
	held    bool // this process holds the ledger
	off     bool // the tail failed: it is not used again
	again   time.Time
	kept    int64 // commits written to the tail
	pending []*tail.Commit
	used    int // used bytes of the tail, approximately
	idle    int // ticks since the last commit
	settles int // ticks since the file had all commits

	known
	commits int    // since the ledger was taken
	vain    int    // how often a read needed the tail's commits in the file
	record  []byte // buffer for one record, for the goroutine with updating
}

func (t *tailing) init(s *Store) {
	t.s, t.updating, t.taken, t.looking = s, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
}

// start opens the tail of a store that writes, and recovers its commits. With Options.Tail it creates the tail.
func (t *tailing) start(wanted bool) (err error) {
	if err := t.open(true); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.file.Close())
		}
	}()
	shared, left, err := t.tryShare()
	if shared {
		t.unshare()
	}
	if left && err == nil {
		err = t.recover(context.Background(), false)
	}
	if err != nil || !wanted {
		return err
	}
	t.wanted = true
	t.ended.Go(t.tend)
	t.updating <- struct{}{}
	defer func() { <-t.updating }()
	_, err = t.hold(context.Background())
	return err
}

// open opens the tail. If there is no tail and none is to be created, file stays nil, without an error.
func (t *tailing) open(create bool) error {
	path, err := t.ledgerFile()
	if err != nil {
		return err
	}
	f, err := tail.Open(path, tail.Options{Create: create, ReadOnly: t.s.readOnly})
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ledger %s: %w", t.s.path, err)
	}
	t.file = f
	return nil
}

// ledgerFile returns the path beside which the tail is. A reader may have opened the file by a symbolic link; SQLite's log is not beside that link, either.
func (t *tailing) ledgerFile() (string, error) {
	if !t.s.readOnly {
		return t.s.path, nil
	}
	path, err := filepath.EvalSymlinks(t.s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.s.path, nil // opening the ledger reports that it is missing
	}
	if err != nil {
		return "", fmt.Errorf("ledger %s: its tail cannot be found: %w", t.s.path, err)
	}
	return path, nil
}

// share waits until no other process holds the ledger, and prevents others from holding it until release. Holding says that the caller has updating. If
// this process holds the ledger, share locks nothing. Of several waiting goroutines, one at a time tries; the goroutine with updating tries in addition,
// because the other one may wait for it.
func (t *tailing) share(ctx context.Context, holding bool) (release func(), err error) {
	var end <-chan time.Time
	looks := holding
	for {
		shared, left, err := t.tryShare()
		if left && err == nil {
			shared, err = false, t.recover(ctx, holding)
		}
		if err != nil {
			return nil, err
		}
		if shared {
			return t.unshare, nil
		}
		if end == nil {
			timer := time.NewTimer(t.s.busy)
			defer timer.Stop()
			end = timer.C
			t.mu.RLock()
			stop, _ := t.file.Ring()
			t.mu.RUnlock()
			defer stop()
		}
		turn, again := t.looking, (<-chan time.Time)(nil)
		if looks {
			turn, again = nil, time.After(lookAgain)
		}
		select {
		case turn <- struct{}{}:
			looks = true
			defer func() { <-t.looking }()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.s.closed:
			return nil, ErrClosed
		case <-end:
			return nil, fmt.Errorf("ledger %s: %w, and waiting did not help: end the program that holds it", t.s.path, ErrLocked)
		case <-again:
		}
	}
}

// tryShare tries to take the shared lock. If left is true, a dead process left commits in the tail, and nothing is locked.
func (t *tailing) tryShare() (shared, left bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.s.closed: // and so may be the file
		return false, false, ErrClosed
	default:
	}
	switch {
	case t.busy:
		return false, false, nil
	case t.held, t.shared > 0 && t.locked:
		if err := t.file.Same(); err != nil { // another process may have locked another one
			return false, false, t.explained(err)
		}
		t.shared++
		return true, false, nil
	case t.file == nil:
		if err := t.open(false); err != nil {
			return false, false, err
		}
		if t.file == nil {
			t.shared++ // there is no tail
			return true, false, nil
		}
	}
	if err := t.file.Same(); err != nil {
		return false, false, t.explained(err)
	}
	if ok, err := t.file.TryShared(); err != nil || !ok {
		return false, false, t.explained(err)
	}
	left, err = t.file.Pending()
	if err != nil || left {
		return false, left, t.explained(errors.Join(err, t.file.Unlock()))
	}
	t.shared, t.locked = t.shared+1, true
	return true, false, nil
}

// unshare is the release of share.
func (t *tailing) unshare() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shared--; t.shared == 0 && t.locked {
		t.locked = false
		// If the unlock fails, closing the file releases the lock; until then, waiting processes report it.
		_ = t.file.Unlock()
	}
}

// explained adds the meaning of an error of the tail.
func (t *tailing) explained(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("ledger %s: %w: make room, or `pgfsm ledger prune`, and try again (%w)", t.s.path, ErrFull, err)
	case errors.Is(err, tail.ErrDamaged):
		return fmt.Errorf("ledger %s: %w: %w; keep it and the ledger to find out what happened, and move it away to go on "+
			"without what nothing else has", t.s.path, ErrNotLedger, err)
	}
	return fmt.Errorf("ledger %s: %w", t.s.path, err)
}

// hold takes the ledger, if that is configured and possible now. The caller has updating. The error says why hold could not release the ledger again.
func (t *tailing) hold(ctx context.Context) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.held && (t.off || t.useless()):
		t.mu.Unlock()
		err := t.letGo()
		t.mu.Lock()
		return false, err
	case t.held && t.stale:
		err := t.know(ctx)
		return err == nil, err
	case t.held:
		return true, nil
	case !t.wanted, t.off, t.busy, t.locked, time.Now().Before(t.again):
		return false, nil
	}
	if !t.begin(ctx) {
		return false, nil
	}
	signal(t.taken)
	return true, nil
}

// begin takes the exclusive lock and starts the tail. The next call of share handles its errors and left commits.
func (t *tailing) begin(ctx context.Context) bool {
	t.again = time.Now().Add(afterBell)
	if t.file.Same() != nil || t.file.Rung() {
		return false
	}
	if got, err := t.file.TryExclusive(); err != nil || !got {
		return false
	}
	left, err := t.file.Pending()
	if err == nil && !left {
		if err = t.know(ctx); err == nil {
			if err = t.file.Begin(); err != nil {
				t.again = time.Now().Add(afterFailing)
			}
		}
	}
	if err != nil || left {
		_ = t.file.Unlock() // see unshare
		return false
	}
	t.held, t.commits, t.vain, t.idle, t.used, t.again = true, 0, 0, 0, 0, time.Time{}
	return true
}

// useless reports whether nearly all commits in the tail are needed in the file at once.
func (t *tailing) useless() bool {
	return t.vain >= uselessFrom && t.vain*2 > t.commits
}

// letGo moves all commits into the file and releases the ledger. The caller has updating. If it fails, the ledger is still held.
func (t *tailing) letGo() error {
	t.s.writing <- struct{}{}
	defer func() { <-t.s.writing }()
	return t.leave()
}

// leave is letGo for a caller that has Store.writing.
func (t *tailing) leave() error {
	if err := t.settle(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.held {
		return nil
	}
	return t.release()
}

// release releases the ledger; the file has all commits. The caller has mu.
func (t *tailing) release() error {
	if err := t.file.End(); err != nil {
		return t.explained(err)
	}
	switch {
	case t.useless():
		t.again = time.Now().Add(afterUseless)
	case t.idle < idleTicks: // another process waits
		t.again = time.Now().Add(afterBell)
	}
	t.held, t.broken = false, nil // the tail's content is obsolete
	t.known.reset()
	// Transactions that began to read meanwhile continue without a lock: the file has all commits from before they began. A glance calls share again for
	// its next read.
	return t.explained(t.file.Unlock())
}

// tend moves commits into the file while the ledger is held, until the store is closed.
func (t *tailing) tend() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	ticker.Stop()
	for {
		select {
		case <-t.s.closed:
			return
		case <-t.taken:
			ticker.Reset(tickEvery)
		case <-ticker.C:
			if !t.tick() {
				ticker.Stop()
			}
		}
	}
}

// tick does the periodic work while the ledger is held, and reports whether it is still held.
func (t *tailing) tick() bool {
	t.mu.Lock()
	t.idle, t.settles = t.idle+1, t.settles+1
	wait := len(t.pending) == 0 || len(t.pending) < settleFrom && t.settles < settleTicks && t.idle < idleTicks && !t.much()
	held, over := t.held, t.idle > idleTicks && len(t.pending) == 0 || t.useless() || t.held && t.file.Rung()
	t.mu.Unlock()
	switch {
	case !held:
		return false
	case over:
		if t.s.enter(context.Background(), t.updating) != nil {
			return false
		}
		defer func() { <-t.updating }()
		return t.letGo() != nil // the next tick tries again
	}
	if !wait && t.catchUp() == nil {
		t.makeRoom()
	}
	return true
}

// catchUp moves all commits into the file. After an error, the next tick tries again, and a transaction that needs the commits returns the error.
func (t *tailing) catchUp() error {
	if err := t.s.lock(context.Background()); err != nil {
		return err
	}
	defer func() { <-t.s.writing }()
	return t.settle()
}

// makeRoom restarts the tail if much of it is used. At that time most commits are in the file, so new commits wait only briefly.
func (t *tailing) makeRoom() {
	if !t.nearlySettled() || t.s.enter(context.Background(), t.updating) != nil {
		return
	}
	defer func() { <-t.updating }()
	if _, held := t.reached(); held {
		_ = t.restart(context.Background()) // a commit that needs the space tries again and returns the error
	}
}

// nearlySettled reports whether much of the tail is used. If so, it has moved commits into the file, while others arrived, until few were left or their
// number did not decrease.
func (t *tailing) nearlySettled() bool {
	for range catchUps {
		t.mu.RLock()
		left, much := len(t.pending), t.much()
		t.mu.RUnlock()
		if !much || left < restartBelow {
			return much
		}
		if t.catchUp() != nil {
			return false
		}
	}
	return true
}

// much reports whether enough of the tail is used to restart it. The caller has mu.
func (t *tailing) much() bool { return t.used > tail.Capacity/2 }

// close moves all commits into the file and closes the tail. The caller has stopped all updates and writes.
func (t *tailing) close() error {
	t.ended.Wait()
	err := t.leave()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return err
	}
	t.locked = false // transactions that began to read continue without the lock, as after release
	return errors.Join(err, t.file.Close())
}
