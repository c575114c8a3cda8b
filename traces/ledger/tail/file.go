package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// Suffix is the suffix of a tail's name after the ledger's name.
const Suffix = "-tail"

// Capacity is how many bytes the file has, with its header. It bounds the commits that are moved into a ledger at once.
const Capacity = 16 << 20

const (
	fileMode  = 0o600 // it holds what tools returned
	readers   = 0o044 // readers of the ledger may read its tail
	othersMay = 0o022 // write
)

// What can be wrong. The errors that wrap these name the file.
var (
	// ErrFull means that a record does not fit after the others or, if there are none, is too large.
	ErrFull = errors.New("the ledger's tail is full")
	// ErrDamaged means that the file has content that this package never writes, even in a crash.
	ErrDamaged = errors.New("the ledger's tail is damaged")
	// ErrBusy means that the lock that is needed is not held: another process may have it.
	ErrBusy = errors.New("the ledger's tail is not locked for this")
	// ErrUndecided means that the record may or may not be in the file, now or after a power failure. Append fails until [File.Restart]. The caller must
	// remember its commits until Restart or [File.End] has succeeded.
	ErrUndecided = errors.New("it is unknown whether it was recorded")
	// ErrUnsafe means that the file may belong to another user, or that other users may change it.
	ErrUnsafe = errors.New("the ledger's tail cannot be trusted")
)

// errMoved says that a path leads to another file than when it was opened.
var errMoved = errors.New("it was moved or replaced")

// Options say how a tail is opened.
type Options struct {
	Create   bool // make it if there is none
	ReadOnly bool

	capacity int64 // [Capacity] unless a test says otherwise
}

// A File is the open tail of a ledger. Its methods must not be called at the same time, save [File.Rung].
type File struct {
	path     string
	readOnly bool
	capacity int64
	disk     disk
	info     fs.FileInfo // of the file that was opened

	lock *flock.Flock
	hold hold

	bell  string
	mode  fs.FileMode // of a bell that is made
	asked sync.Mutex  // guards [File.Rung], whose lock this whole process shares

	generation generation // of the header that Begin or Restart wrote
	at         int64      // offset of the next record; 0 before Begin or Restart
	index      uint32     // of the next record
	undecided  bool       // since the last record
	buffer     []byte     // of the record that is being appended
	head       [headerSize]byte
}

// A disk is the part of an operating system's file that a File needs.
type disk interface {
	ReadAt(b []byte, at int64) (int, error)
	WriteAt(b []byte, at int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error      // all data, and the file's length
	flush() error     // the data written within its length
	flushName() error // the file's name
	Close() error
}

// An opened is a disk of the operating system.
type opened struct {
	*os.File
	raw syscall.RawConn
}

func (o opened) flushName() error {
	folder, err := os.Open(filepath.Dir(o.Name()))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Open opens the tail of a ledger's path. The path must be absolute, without symbolic links that may change. If there is no tail and Options.Create is not
// set, the error is [fs.ErrNotExist]. A new file is empty. Open refuses a file that is not regular, has several names, or may be written by other users.
func Open(ledger string, o Options) (*File, error) {
	path := ledger + Suffix
	f := &File{path: path, readOnly: o.ReadOnly, capacity: o.capacity, bell: path + bellSuffix}
	if f.capacity == 0 {
		f.capacity = Capacity
	}
	flag := os.O_RDWR
	if o.ReadOnly {
		flag = os.O_RDONLY
	}
	f.mode = modeOf(ledger)
	if o.Create && !o.ReadOnly {
		if err := errors.Join(made(path, f.mode), made(f.bell, f.mode)); err != nil {
			return nil, err
		}
	}
	info, err := trusted(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, fmt.Errorf("the ledger's tail cannot be opened: %w: who reads the ledger needs to read its tail, too", err)
	}
	f.lock = flock.New(path, flock.SetFlag(flag), flock.SetPermissions(fileMode))
	if f.info, err = file.Stat(); err == nil && !os.SameFile(info, f.info) {
		err = fmt.Errorf("%s: %w at the moment when it was opened", path, errMoved)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.disk = opened{file, raw}
	return f, nil
}

// made creates an empty file if there is none, and refuses any other object at the path. The file is written only under the lock, so another process never
// sees a half-written file.
func made(path string, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		_, err = trusted(path)
		return err
	}
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w: may this user write the folder?", path, err)
	}
	if mode&readers != 0 {
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

// modeOf returns the mode of what is made beside a ledger.
func modeOf(ledger string) fs.FileMode {
	info, err := os.Stat(ledger)
	if err != nil {
		return fileMode
	}
	return fileMode | info.Mode().Perm()&readers
}

// trusted refuses a file that is not to be trusted.
func trusted(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if why := Distrust(info); why != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrUnsafe, why)
	}
	return info, nil
}

// Distrust returns why a file, by its [os.Lstat], cannot be a ledger or its tail: it is not regular, has several names, or may be written by other users.
// Nil means that it can be.
func Distrust(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	case info.Mode().Perm()&othersMay != 0:
		return fmt.Errorf("others may write it (%s); run chmod go-w on it", info.Mode().Perm())
	case names(info) > 1:
		return errors.New("it has a second name (a hard link); remove that, or copy the file")
	}
	return nil
}

// Same returns an error if the path does not lead to this file any more.
func (f *File) Same() error {
	now, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(f.info, now):
		return fmt.Errorf("%s: %w: put back the file that was there, or end this program and start it again", f.path, errMoved)
	case err != nil:
		return fmt.Errorf("%s: cannot check whether the file is still there: %w", f.path, err)
	}
	return nil
}

// Close lets go of the lock and closes the file.
func (f *File) Close() error {
	return errors.Join(f.Unlock(), f.disk.Close())
}

// needs returns [ErrBusy] unless the lock is held at least this strongly.
func (f *File) needs(h hold) error {
	if f.hold < h {
		return fmt.Errorf("%s: %w: the %s lock is needed, and the %s one is held", f.path, ErrBusy, h, f.hold)
	}
	return nil
}

// writes is needs for the exclusive lock.
func (f *File) writes() error {
	if f.readOnly {
		return fmt.Errorf("%s was opened to read only: %w", f.path, fs.ErrPermission)
	}
	return f.needs(exclusive)
}
