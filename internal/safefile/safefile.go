// Package safefile reads files that decide what may run, and replaces files in one step.
package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxBytes bounds the files that are read and written.
const MaxBytes = 16 << 20

// Open opens a file to read it. If the file is a pipe, Open does not wait for a writer.
func Open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|nonBlocking, 0) }

// Read reads a regular file.
func Read(path string) ([]byte, fs.FileInfo, error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("it is not a regular file")
	case info.Size() > MaxBytes:
		return nil, nil, fmt.Errorf("it has %d bytes; at most %d are read", info.Size(), MaxBytes)
	}
	text, err := io.ReadAll(io.LimitReader(f, info.Size()))
	return text, info, err
}

// ReadTrusted reads a regular file that only this process's user and the superuser can have
// written, in a folder where only they can replace it.
func ReadTrusted(path string) ([]byte, error) {
	text, info, err := Read(path)
	if err != nil {
		return nil, err
	}
	if err := checkTrusted(path, info); err != nil {
		return nil, fmt.Errorf("it is refused: %w", err)
	}
	return text, nil
}

// writableByOthers are the permission bits of group and world to write.
const writableByOthers fs.FileMode = 0o022

// CheckOwner returns why a file is not to be trusted as a configuration: a user other than ours can
// have written it. Files of the superuser (0) are trusted, because that user could replace this
// program too. ownerUID is -1 if the file has no owner, which is refused.
func CheckOwner(mode fs.FileMode, ownerUID, ourUID int) error {
	switch {
	case ownerUID < 0 || ownerUID != ourUID && ownerUID != 0:
		return fmt.Errorf("it belongs to user %d, and we are user %d: take it over with chown, or copy it", ownerUID,
			ourUID)
	case mode&writableByOthers != 0:
		return fmt.Errorf("others may write it (mode %04o): run chmod go-w on it", mode.Perm())
	}
	return nil
}

// CheckFolder returns why a folder is not to be trusted with a configuration: a user other than
// ours can replace files in it. The end of the text wants the folder's name. In a folder with the
// sticky bit, only a file's owner can replace it. private says that the folder's group has no other
// member than its owner.
func CheckFolder(mode fs.FileMode, ownerUID, ourUID int, private bool) error {
	sticky := mode&fs.ModeSticky != 0
	switch {
	case ownerUID < 0 || ownerUID != ourUID && ownerUID != 0:
		return fmt.Errorf("belongs to user %d, who can replace the file, and we are user %d: run chown %d", ownerUID,
			ourUID, ourUID)
	case mode&0o002 != 0 && !sticky:
		return fmt.Errorf("lets every user replace the file (mode %04o): run chmod go-w", mode.Perm())
	case mode&0o020 != 0 && !sticky && !private:
		return fmt.Errorf("lets its group replace the file (mode %04o): run chmod g-w", mode.Perm())
	}
	return nil
}

// Create writes a new file. It never overwrites one.
func Create(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Replace writes a file in one step, behind symbolic links, if its content is still was, which the
// caller read; nil means that there is no file. A file keeps its mode; a new one gets the given
// mode.
func Replace(path string, was, text []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := replaceFile(path, was, text, mode); err != nil {
		return fmt.Errorf("%s stays as it is: %w", path, err)
	}
	return nil
}

func replaceFile(path string, was, text []byte, mode fs.FileMode) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("it would have %d bytes; at most %d are read", len(text), MaxBytes)
	}
	return writeBeside(path, text, mode, func(f *os.File) error {
		if err := Unchanged(path, was); err != nil {
			return err
		}
		return f.Sync()
	})
}

// Unchanged returns an error if the content of a file is no longer was; nil means that there is no
// file.
func Unchanged(path string, was []byte) error {
	text, _, err := Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if (text == nil) != (was == nil) || !bytes.Equal(text, was) {
		return errors.New("it is no longer what was read: run the command again")
	}
	return nil
}
