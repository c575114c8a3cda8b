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
	// tickEvery is how often who holds the ledger looks whether somebody waits for it.
	tickEvery = 25 * time.Millisecond
	// settleTicks is for how many ticks commits stand in the tail alone, about, while there are more of them. A call that has ended meanwhile
	// is written once.
	settleTicks = 8
	// settleFrom is how many commits are brought into the file sooner, and settleMost how many in one transaction.
	settleFrom = 256
	settleMost = 512
	// Before the tail begins again, what was kept meanwhile is brought in, too: catchUps times at most, or until restartBelow commits are left.
	// Who commits waits for those.
	catchUps     = 4
	restartBelow = 16
	// idleTicks is for how many ticks nothing is committed before the ledger is let go of.
	idleTicks = 4
	// afterBell is how long the ledger is not taken again for one who has let go of it because another process waited.
	afterBell = 200 * time.Millisecond
	// afterUseless is how long it is not taken where the tail was of no use.
	afterUseless = time.Second
	// afterFailing is how long it is not taken where the tail could not be begun. On a full disk each try takes all room there is for a moment.
	afterFailing = time.Minute
	// uselessFrom is how many looks in vain at the tail are counted before it is held to be of no use.
	uselessFrom = 8
	// lookAgain is how often one who waits for another process's tail looks whether it has let go.
	lookAgain = 2 * time.Millisecond
	// maxKnown bounds what is remembered of runs, blobs and tokens while the ledger is held.
	maxKnown = 4096
)

// A tailing is what a Store does with its ledger's tail ([tail.File]). Each transaction holds the tail's shared lock while it begins; a
// Store that was opened with Options.Tail takes the exclusive one when something is to be committed, and keeps it as long as it
// commits more: it holds the ledger. Then nobody else reads or writes the ledger, and commits are done when they stand in the tail.
// They are brought into the file together, later, before anybody who looks there could miss them.
type tailing struct {
	s      *Store
	wanted bool

	// updating holds one value while somebody commits, brings in what was left, or lets go of the ledger. It is taken before Store.writing, and
	// that before mu.
	updating chan struct{}
	broken   error         // nobody knows what stands in the tail; who has updating looks
	taken    chan struct{} // the ledger was taken
	looking  chan struct{} // holds one value while somebody who waits looks whether another process has let go
	ended    sync.WaitGroup

	mu      sync.RWMutex
	file    *tail.File
	shared  int  // transactions of this process that share
	locked  bool // and the shared lock is held for them
	busy    bool // what was left is being brought in
	held    bool // this process holds the ledger
	off     bool // the tail failed: it is not used again
	again   time.Time
	kept    int64 // commits that were kept in the tail
	pending []*tail.Commit
	used    int // bytes of the tail, about
	idle    int // ticks since the last commit
	settles int // ticks since everything stood in the file

	known
	commits int    // since the ledger was taken
	vain    int    // how often what was kept had to be brought in at once
	record  []byte // room for one; who has updating uses it
}

func (t *tailing) init(s *Store) {
	t.s, t.updating, t.taken, t.looking = s, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
}

// start opens the tail of a store that writes, and brings in what was left there. One that keeps commits there makes room for them.
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

// open opens the tail. Where there is none, and none is to be made, there is no file afterwards and no error.
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

// ledgerFile returns the name beside which the tail stands: who only reads may know the file by a link, and SQLite's log does not stand there either.
func (t *tailing) ledgerFile() (string, error) {
	if !t.s.readOnly {
		return t.s.path, nil
	}
	path, err := filepath.EvalSymlinks(t.s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.s.path, nil // who looks at the ledger itself says that it is gone
	}
	if err != nil {
		return "", fmt.Errorf("ledger %s: its tail cannot be found: %w", t.s.path, err)
	}
	return path, nil
}

// share waits until no other process holds the ledger, and keeps it from being held until release. Holding says that the caller has
// updating. Where this process holds the ledger, it is the caller's, and nothing is locked. Of many who wait one looks, and then the next; who
// has updating looks beside it, for the other one may wait for that.
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

// tryShare takes the shared lock if it can be had now. Left says that somebody left commits in the tail: then nothing is locked.
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
			t.shared++ // there is no tail, and who makes one finds the ledger as it is
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
		// A lock that cannot be let go of is let go of when the file is closed; until then who waits says so.
		_ = t.file.Unlock()
	}
}

// explained says what an error of the tail means.
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

// hold takes the ledger, if that is wanted and can be done now. The caller has updating.
// The error is why it cannot let go of it where it should.
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

// begin takes the exclusive lock and begins the tail. What prevents it, or what was left there, is the business of who shares the lock next.
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

// useless reports whether nearly all that is kept in the tail is looked for in the file at once.
func (t *tailing) useless() bool {
	return t.vain >= uselessFrom && t.vain*2 > t.commits
}

// letGo brings everything into the file and lets go of the ledger. The caller has updating. If it fails, the ledger is still held.
func (t *tailing) letGo() error {
	t.s.writing <- struct{}{}
	defer func() { <-t.s.writing }()
	return t.leave()
}

// leave is letGo for who may write.
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

// release lets go of a ledger of which nothing stands in the tail alone. The caller has mu.
func (t *tailing) release() error {
	if err := t.file.End(); err != nil {
		return t.explained(err)
	}
	switch {
	case t.useless():
		t.again = time.Now().Add(afterUseless)
	case t.idle < idleTicks: // somebody waits
		t.again = time.Now().Add(afterBell)
	}
	t.held, t.broken = false, nil // what stands in the tail counts no more
	t.known.reset()
	// Who began to read here meanwhile goes on without a lock: all that had been committed then is in the file. A glance shares again for its next
	// read.
	return t.explained(t.file.Unlock())
}

// tend brings commits into the file while the ledger is held, until the store is closed.
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

// tick does what is to be done from time to time while the ledger is held, and reports whether it still is.
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
		return t.letGo() != nil // what failed is tried again
	}
	if !wait && t.catchUp() == nil {
		t.makeRoom()
	}
	return true
}

// catchUp brings in what was kept until now. What failed is tried again, and who needs it is told.
func (t *tailing) catchUp() error {
	if err := t.s.lock(context.Background()); err != nil {
		return err
	}
	defer func() { <-t.s.writing }()
	return t.settle()
}

// makeRoom begins the tail again if much of it is used. Little is left then that is not in the file, so nobody waits for long, as they
// would if it were full.
func (t *tailing) makeRoom() {
	if !t.nearlySettled() || t.s.enter(context.Background(), t.updating) != nil {
		return
	}
	defer func() { <-t.updating }()
	if _, held := t.reached(); held {
		_ = t.restart(context.Background()) // who needs the room tries again, and is told
	}
}

// nearlySettled reports whether much of the tail is used. Then it has brought in what was kept meanwhile, while others kept more, until little
// was left or it did not become less.
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

// much reports whether so much of the tail is used that it is time to begin it again. The caller has mu.
func (t *tailing) much() bool { return t.used > tail.Capacity/2 }

// close brings everything into the file and closes the tail. Nobody updates or writes any more.
func (t *tailing) close() error {
	t.ended.Wait()
	err := t.leave()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return err
	}
	t.locked = false // who began to read goes on without the lock, as after release
	return errors.Join(err, t.file.Close())
}
