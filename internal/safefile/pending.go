package safefile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A Pending file is written beside a file, and takes its place in one step. Windows does not
// promise that a rename is whole after a crash.
type Pending struct {
	*os.File
	path string
}

// NewPending returns a file that will take the place of path. An existing file keeps its mode,
// and its group if this user may give it; a new one gets the given mode, less the umask.
func NewPending(path string, mode fs.FileMode) (*Pending, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	p := &Pending{f, path}
	if info, err := os.Stat(path); err == nil {
		keepGroup(f, info)
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return nil, errors.Join(err, p.Cleanup())
		}
	}
	return p, nil
}

// CloseAtomicallyReplace closes the file and puts it in its place.
func (p *Pending) CloseAtomicallyReplace() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return err
	}
	return os.Rename(p.Name(), p.path)
}

// Cleanup removes the file, unless it is in its place.
func (p *Pending) Cleanup() error {
	_ = p.Close() // it may be closed already
	if err := os.Remove(p.Name()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write writes a file in one step. An existing file keeps its mode; a new one gets the given mode,
// less the umask.
func Write(path string, text []byte, mode fs.FileMode) error {
	p, err := NewPending(path, mode)
	if err != nil {
		return err
	}
	if _, err := p.File.Write(text); err != nil {
		return errors.Join(err, p.Cleanup())
	}
	return errors.Join(p.CloseAtomicallyReplace(), p.Cleanup())
}
