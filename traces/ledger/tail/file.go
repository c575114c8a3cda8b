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

// Suffix is what the name of a ledger's tail has behind the ledger's.
const Suffix = "-tail"

// Capacity is how many bytes the file has, with its header. It bounds what has to be brought into a ledger at once.
const Capacity = 16 << 20

const (
	fileMode  = 0o600 // it holds what tools returned
	readers   = 0o044 // who may read the ledger may read its tail
	othersMay = 0o022 // write
)

// What can be wrong. The errors that wrap these name the file.
var (
	// ErrFull means that a record does not fit behind the others, or, if there are none, at all.
	ErrFull = errors.New("the ledger's tail is full")
	// ErrDamaged means that the file is not what this package writes, whatever fails.
	ErrDamaged = errors.New("the ledger's tail is damaged")
	// ErrBusy means that the lock that is needed is not held: another process may have it.
	ErrBusy = errors.New("the ledger's tail is not locked for this")
	// ErrUndecided means that nobody can say whether the record is there, now or after the power failed. Nothing can be
	// appended until [File.Restart], and nothing should be forgotten until that or [File.End] has succeeded.
	ErrUndecided = errors.New("nobody can say whether it was recorded")
	// ErrUnsafe means that the file may be another's, or may be changed by others.
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
	asked sync.Mutex  // by [File.Rung]: its lock is on the same file for everybody in this process

	generation generation // of the header that Begin or Restart wrote
	at         int64      // where the next record goes; 0 unless one of them did
	index      uint32     // that the next record has
	undecided  bool       // since the last record
	buffer     []byte     // of the record that is being appended
	head       [headerSize]byte
}

// A disk is what a File needs of an operating system's file.
type disk interface {
	ReadAt(b []byte, at int64) (int, error)
	WriteAt(b []byte, at int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error      // all that was written, and the file's length
	flush() error     // what was written within its length
	flushName() error // the file's name
	Close() error
}

// An opened is the disk of an operating system.
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

// Open opens the tail of a ledger's path, which must be absolute or stay right, and have no symbolic link that may come
// to lead elsewhere. Where there is none, and none is to be made, the error is [fs.ErrNotExist]. What is made is empty.
// A file that is not a plain one of one name, or that others may write, is refused.
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

// made makes an empty file where there is none, and refuses what must not stand in its place. Nothing is written into
// it without the lock, so who finds it a moment later does not find half of anything.
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

// Distrust says of what [os.Lstat] returned why such a file is neither a ledger nor its tail: it is not a plain one with one name,
// or others may write it. Nil: it may be.
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
		return fmt.Errorf("%s: nobody can say whether the file is still there: %w", f.path, err)
	}
	return nil
}

// Close lets go of the lock and closes the file.
func (f *File) Close() error {
	return errors.Join(f.Unlock(), f.disk.Close())
}

// needs returns [ErrBusy] unless the lock is held in this way or a stronger one.
func (f *File) needs(h hold) error {
	if f.hold < h {
		return fmt.Errorf("%s: %w: the %s lock is needed, and the %s one is held", f.path, ErrBusy, h, f.hold)
	}
	return nil
}

// writes is needs for who writes.
func (f *File) writes() error {
	if f.readOnly {
		return fmt.Errorf("%s was opened to read only: %w", f.path, fs.ErrPermission)
	}
	return f.needs(exclusive)
}
