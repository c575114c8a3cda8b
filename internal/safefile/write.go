package safefile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file in one step, and flushes it to disk. An existing file keeps its mode, and its
// group if this user may give it; a new one gets the given mode, less the umask. Windows does not
// promise that a rename is whole after a crash.
func Write(path string, text []byte, mode fs.FileMode) error {
	return writeBeside(path, text, mode, (*os.File).Sync)
}

// WriteUnflushed is [Write] for a file that can be made again: after a crash of the machine, the
// file may be empty.
func WriteUnflushed(path string, text []byte, mode fs.FileMode) error {
	return writeBeside(path, text, mode, func(*os.File) error { return nil })
}

// writeBeside writes a file beside path, calls prepare with it, and gives it the name path.
func writeBeside(path string, text []byte, mode fs.FileMode, prepare func(*os.File) error) error {
	early := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text())
	f, err := os.OpenFile(early, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}

	err = writeLike(f, path, text)
	if err == nil {
		err = prepare(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(early))
	}
	return err
}

// writeLike writes text to a file, and gives it the mode and the group of the file at path.
func writeLike(f *os.File, path string, text []byte) error {
	if info, err := os.Stat(path); err == nil {
		keepGroup(f, info)
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	_, err := f.Write(text)
	return err
}
