package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"pgfsm/internal/safefile"
	"sync"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

const (
	ownersSuffix = ".owners"
	lockSuffix   = ".lock"
	// ownTries bounds the attempts of AcquireOwnership while another process checks the same owner.
	ownTries = 100
)

// ownersFolder returns the folder of the owners' locks, and makes it if create is set. No other
// user may put files there.
func ownersFolder(path string, create bool) (string, error) {
	folder := path + ownersSuffix
	if create {
		if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("ledger %s: the folder of its owners: %w", path, err)
		}
	}
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("ledger %s: %w: %s is not a folder (%s); remove it", path, ErrUnsafeFile, folder,
			info.Mode().Type())
	case info.Mode().Perm()&othersMay != 0:
		return "", fmt.Errorf("ledger %s: %w: others may write %s; run chmod go-w on it", path, ErrUnsafeFile, folder)
	}
	return folder, nil
}

// lockFile returns the file of an owner's lock. The id must be a UUID in its usual form, because it
// becomes a file name.
func (s *Store) lockFile(owner string, create bool) (string, error) {
	if id, err := uuid.Parse(owner); err != nil || id.String() != owner {
		return "", fmt.Errorf("%q is not the id of an owner: want a UUID", owner)
	}
	folder, err := ownersFolder(s.path, create)
	return filepath.Join(folder, owner+lockSuffix), err
}

// AcquireOwnership implements [ledger.Store.AcquireOwnership]. It locks a file; the operating
// system releases the lock when the process ends, for any reason. release removes the file, or a
// process that finds it unlocked does.
func (s *Store) AcquireOwnership(_ context.Context, owner string) (release func() error, err error) {
	if s.readOnly {
		return nil, fmt.Errorf("ledger %s: %w: it was opened to read only", s.path, ErrReadOnly)
	}
	file, err := s.lockFile(owner, true)
	if err != nil {
		return nil, err
	}

	for range ownTries {
		lock := flock.New(file, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
		locked, err := lock.TryLock()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ledger %s: the lock of owner %s: %w", s.path, owner, err), lock.Close())
		}
		if !locked {
			lock.Close()
			return nil, fmt.Errorf("ledger %s: owner %s is another process: %w", s.path, owner, ErrLocked)
		}
		if safefile.IsCurrent(lock, file) {
			return sync.OnceValue(func() error { return errors.Join(os.Remove(file), lock.Close()) }), nil
		}
		lock.Close() // another process found the file unlocked and removed it
	}

	return nil, fmt.Errorf("ledger %s: the lock of owner %s is removed as often as it is made", s.path, owner)
}

// OwnerGone implements [ledger.Store.OwnerGone].
func (s *Store) OwnerGone(_ context.Context, owner string) (bool, error) {
	file, err := s.lockFile(owner, false)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // no process has ever owned a run
	}
	if err != nil {
		return false, err
	}

	// The lock is shared, so that two processes that check at the same time do not take each other
	// for the owner.
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("ledger %s: the lock of owner %s: %w", s.path, owner, err), lock.Close())
	}

	if locked && !s.readOnly && safefile.IsCurrent(lock, file) {
		// No process can own this file from now on: AcquireOwnership checks, after it has locked
		// its file, that the file still exists.
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, errors.Join(err, lock.Close())
		}
	}

	return locked, lock.Close()
}

// OwnerGone implements [ledger.Tx.OwnerGone].
func (t *tx) OwnerGone(owner string) (bool, error) { return t.store.OwnerGone(t.ctx, owner) }
