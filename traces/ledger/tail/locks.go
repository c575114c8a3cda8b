package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const bellSuffix = "-bell"

const (
	// ringTries bounds how often Ring meets a process that is just asking whether the bell rings. That takes it
	// microseconds, or longer if it is not running just then.
	ringTries = 1000
	ringPause = time.Millisecond
)

// A hold is how the lock is held. A greater one permits more.
type hold int

const (
	free hold = iota
	shared
	exclusive
)

func (h hold) String() string { return [...]string{"free", "shared", "exclusive"}[h] }

// TryShared takes the shared lock unless somebody has the exclusive one. It does not wait. A File that has the
// exclusive lock keeps that.
func (f *File) TryShared() (bool, error) {
	if f.hold >= shared {
		return true, nil
	}
	return f.try(f.lock.TryRLock, shared)
}

// TryExclusive takes the exclusive lock unless somebody else has any. It does not wait. A shared lock is given up for
// it, whether it is had or not, and another process may have the exclusive one in between: what was read under the
// shared lock has to be read again.
func (f *File) TryExclusive() (bool, error) {
	if f.hold == exclusive {
		return true, nil
	}
	return f.try(f.lock.TryLock, exclusive)
}

// try takes the lock with a descriptor of its own, which is opened by name: it must be the file that is read and
// written.
func (f *File) try(take func() (bool, error), h hold) (bool, error) {
	f.hold = free
	ok, err := take()
	if err == nil && ok {
		info, failed := f.lock.Stat()
		if err = failed; err == nil && !os.SameFile(f.info, info) {
			err = errMoved
		}
	}
	if err != nil || !ok {
		err = errors.Join(err, f.lock.Unlock())
	}
	if err != nil {
		return false, fmt.Errorf("the lock of %s: %w", f.path, err)
	}
	if ok {
		f.hold = h
	}
	return ok, nil
}

// Unlock gives up the lock, if it is held. What was appended, and not ended, stays pending.
func (f *File) Unlock() error {
	f.hold, f.at = free, 0
	if err := f.lock.Unlock(); err != nil {
		return fmt.Errorf("the lock of %s: %w", f.path, err)
	}
	return nil
}

// Ring tells whoever has the lock that somebody waits for it, until stop is called or the process ends. It is not ok
// where the bell cannot be rung, for example because it must be made first and the folder is read-only: then the lock
// has to be waited for like that.
func (f *File) Ring() (stop func(), ok bool) {
	silent := func() {}
	var err error
	if f.readOnly {
		_, err = trusted(f.bell)
	} else {
		err = made(f.bell, f.mode)
	}
	if err != nil {
		return silent, false
	}
	lock := flock.New(f.bell, flock.SetFlag(os.O_RDONLY))
	for range ringTries {
		ringing, err := lock.TryRLock()
		if err != nil {
			return silent, false
		}
		if ringing {
			return sync.OnceFunc(func() { lock.Close() }), true
		}
		time.Sleep(ringPause) // somebody asks whether it rings, at this moment
	}
	return silent, false
}

// Rung reports whether somebody rings: whether an exclusive lock of the bell is refused. It is for who has the lock of
// the tail: of two processes that ask at once each may take the other for one that rings. Who cannot tell lets go
// rather than keep others waiting.
func (f *File) Rung() bool {
	f.asked.Lock()
	defer f.asked.Unlock()
	lock := flock.New(f.bell, flock.SetFlag(os.O_RDONLY))
	silent, err := lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		return made(f.bell, f.mode) != nil // nobody rings a bell that is not there
	}
	return errors.Join(err, lock.Close()) != nil || !silent
}
