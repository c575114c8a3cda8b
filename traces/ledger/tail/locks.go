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

// A hold is the strength of the lock. A greater one permits more.
type hold int

const (
	free hold = iota
	shared
	exclusive
)

func (h hold) String() string { return [...]string{"free", "shared", "exclusive"}[h] }

// TryShared takes the shared lock unless another process has the exclusive lock. It does not wait. A File that has the exclusive lock keeps it.
func (f *File) TryShared() (bool, error) {
	if f.hold >= shared {
		return true, nil
	}
	return f.try(f.lock.TryRLock, shared)
}

// TryExclusive takes the exclusive lock unless another process has any lock. It does not wait. It first releases a shared lock, even if it then fails.
// Another process may have the exclusive lock in between, so the caller must read again what it read under the shared lock.
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

// Unlock releases the lock, if it is held. Appended records stay pending until End.
func (f *File) Unlock() error {
	f.hold, f.at = free, 0
	if err := f.lock.Unlock(); err != nil {
		return fmt.Errorf("the lock of %s: %w", f.path, err)
	}
	return nil
}

// Ring signals to the process with the lock that this process waits, until stop is called or the process ends. Ok is false if Ring cannot signal, for
// example because the bell's file does not exist and the folder is read-only; the caller then waits without a signal.
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
		time.Sleep(ringPause) // another process is in Rung at the moment
	}
	return silent, false
}

// Rung reports whether another process has called Ring, that is, whether an exclusive lock of the bell fails. Only the process with the tail's lock should
// call Rung, because two calls at the same time see each other as ringing. After an error, Rung returns true, so that no process waits for ever.
func (f *File) Rung() bool {
	f.asked.Lock()
	defer f.asked.Unlock()
	lock := flock.New(f.bell, flock.SetFlag(os.O_RDONLY))
	silent, err := lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		return made(f.bell, f.mode) != nil // without a bell, no process rings
	}
	return errors.Join(err, lock.Close()) != nil || !silent
}
