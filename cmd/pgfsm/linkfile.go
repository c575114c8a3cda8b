package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// maxBackups is how many earlier states of a client's file are kept beside it before somebody has to tidy up.
const maxBackups = 99

// A linkFile is a client's file as it was read.
type linkFile struct {
	path string      // of the file itself, behind every symbolic link
	text []byte      // nil: there is no file
	mode fs.FileMode // that it has, or shall have
}

// readLinkFile reads a client's file, whoever may write it: it is the client's, and what is in it is not used here.
func readLinkFile(path string) (*linkFile, error) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a symbolic link that leads nowhere: remove it, or make the file that it names", path)
		}
		return &linkFile{path: path, mode: 0o600}, nil
	case err != nil:
		return nil, err
	}
	// Without O_NONBLOCK a pipe with that name would be waited for, for ever.
	f, err := os.OpenFile(real, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxConfigBytes:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), maxConfigBytes)
	}
	text := make([]byte, info.Size())
	n, err := readFull(f, text)
	return &linkFile{real, text[:n], info.Mode().Perm()}, err
}

// replace puts a text into the place of the one that was read, in one step and under the same mode, and keeps the one that
// was read beside it. It returns where; empty if there was none.
func (f *linkFile) replace(text []byte) (backup string, err error) {
	made := false
	if f.text != nil {
		if backup, made, err = f.backUp(); err != nil {
			return "", err
		}
	} else if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return "", err
	}
	if err := f.put(text); err != nil {
		if made {
			err = errors.Join(err, os.Remove(backup))
		}
		return "", stays(f.path, err)
	}
	return backup, nil
}

// put replaces the file, unless somebody else has written it since it was read.
func (f *linkFile) put(text []byte) error {
	pending, err := renameio.NewPendingFile(f.path, renameio.WithTempDir(filepath.Dir(f.path)),
		renameio.WithStaticPermissions(f.mode))
	if err != nil {
		return err
	}
	_, err = pending.Write(text)
	if err == nil {
		err = f.unchanged()
	}
	if err == nil {
		err = pending.CloseAtomicallyReplace()
	}
	if err != nil {
		return errors.Join(err, pending.Cleanup())
	}
	return nil
}

func (f *linkFile) unchanged() error {
	now, err := readLinkFile(f.path)
	if err != nil {
		return err
	}
	if (now.text == nil) != (f.text == nil) || !bytes.Equal(now.text, f.text) {
		return errors.New("it is no longer what was read: run the command again")
	}
	return nil
}

// backUp keeps what was read under the first name that is free, so that nothing is ever lost: O_EXCL takes no name that
// anything has, a symbolic link neither. What is kept already is not kept again.
func (f *linkFile) backUp() (path string, made bool, err error) {
	for n := range maxBackups {
		path := f.path + ".bak"
		if n > 0 {
			path += fmt.Sprintf(".%d", n+1)
		}
		if f.isKept(path) {
			return path, false, nil
		}
		switch err := writeNew(path, f.text); {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", false, err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return "", false, errors.Join(err, os.Remove(path))
		}
		return path, true, nil
	}
	return "", false, fmt.Errorf("%s has %d backups beside it already: remove some", f.path, maxBackups)
}

// isKept reports whether a regular file holds what was read, and is no more open to others.
func (f *linkFile) isKept(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&^f.mode != 0 || info.Size() != int64(len(f.text)) {
		return false
	}
	kept, err := readLinkFile(path)
	return err == nil && bytes.Equal(kept.text, f.text)
}
