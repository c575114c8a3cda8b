package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	fileMode   = 0o600 // only the owner: it holds results of tools
	folderMode = 0o700
	othersMay  = 0o022 // group and others may write
)

// creating prevents connections of this process from opening a file while prepareFile creates it:
// closing the new file's descriptor would drop the connection's locks.
var creating sync.Mutex

// prepareFile makes an empty file where there is none, rejects a file that must not be a ledger,
// and returns the one name of the file: two processes that know the file by two names would not see
// each other's locks.
func prepareFile(path string) (string, error) {
	path, err := resolvePath(path)
	if err != nil {
		return "", err
	}
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return path, checkTrusted(path)
	}
	if err != nil {
		return "", fmt.Errorf("ledger %s cannot be made: %w: is its folder there, and may this user write it?", path,
			err)
	}

	if err := errors.Join(f.Close(), flushFolder(filepath.Dir(path))); err != nil {
		return "", fmt.Errorf("ledger %s: %w", path, err)
	}
	return path, nil
}

// resolvePath returns the absolute path with no symbolic link in its folder.
func resolvePath(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w: it has no name; give one, for example sqlite:pgfsm.db", ErrUnsafeFile)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("ledger %s: its folder must be there: %w", path, err)
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}

// checkTrusted rejects a path that is not a regular file, that other users may write, or that has a
// hard link.
func checkTrusted(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	fault := ""
	switch {
	case !info.Mode().IsRegular():
		fault = fmt.Sprintf("it is not a regular file (%s); name the file itself", info.Mode().Type())
	case info.Mode().Perm()&othersMay != 0:
		fault = fmt.Sprintf("others may write it (%s); run chmod go-w on it", info.Mode().Perm())
	case linkCount(info) > 1:
		fault = "it has a second name (a hard link); remove that, or copy the file"
	}
	if fault != "" {
		return fmt.Errorf("ledger %s: %w: %s", path, ErrUnsafeFile, fault)
	}
	return nil
}

// An identity identifies the file to which a path led when it was opened.
type identity struct {
	path string
	stat func(string) (fs.FileInfo, error)
	info fs.FileInfo
}

// identifyFile remembers the file of a path. A file to write is no symbolic link and must not
// become one, so its stat is [os.Lstat]. identifyFile does not open the file, because closing it
// would drop this process's locks on it.
func identifyFile(path string, stat func(string) (fs.FileInfo, error)) (identity, error) {
	info, err := stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("ledger %s: %w", path, err)
	}
	os.SameFile(info, info) // on Windows, only this call finds out which file it is
	return identity{path, stat, info}, nil
}

// checkUnmoved returns [ErrMoved] if the path does not lead to that file any more. The file can
// still be moved right after the check: checkUnmoved detects mistakes of operators, not attackers
// who race.
func (i identity) checkUnmoved() error {
	current, err := i.stat(i.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(i.info, current):
		return fmt.Errorf("ledger %s: %w: nothing is recorded or read there; put back the file that was there, or end this program "+
			"and start it again with the new one", i.path, ErrMoved)
	case err != nil:
		return fmt.Errorf("ledger %s: cannot check whether the file is still there: %w", i.path, err)
	}
	return nil
}

// flushFolder makes a new file's name durable.
func flushFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
