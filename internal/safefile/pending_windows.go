package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A Pending file is written beside a file, and takes its place in one step. renameio does not support Windows, which does not promise that
// a rename is whole after a crash.
type Pending struct {
	*os.File
	path string
	done bool
}

// NewPending returns a file that will take the place of path. Windows has no modes.
func NewPending(path string, _ fs.FileMode) (*Pending, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	return &Pending{File: f, path: path}, err
}

// CloseAtomicallyReplace closes the file and puts it in its place.
func (p *Pending) CloseAtomicallyReplace() error {
	err := errors.Join(p.Sync(), p.Close())
	if err == nil {
		err = os.Rename(p.Name(), p.path)
	}
	p.done = err == nil
	return err
}

// Cleanup removes the file, unless it is in its place.
func (p *Pending) Cleanup() error {
	if p.done {
		return nil
	}
	p.Close()
	return os.Remove(p.Name())
}

// Write writes a file in one step.
func Write(path string, text []byte, mode fs.FileMode) error {
	p, err := NewPending(path, mode)
	if err != nil {
		return err
	}
	if _, err = p.File.Write(text); err == nil {
		err = p.CloseAtomicallyReplace()
	}
	return errors.Join(err, p.Cleanup())
}
