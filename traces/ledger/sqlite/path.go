package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// CheckPath reports why a path cannot be that of a ledger's file.
func CheckPath(path string) error {
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return errors.New("names no file")
	case strings.HasPrefix(path, "~"):
		return errors.New("begins with ~, which is not expanded")
	}
	return nil
}

// PathIn returns a path, where a relative one begins in a folder.
func PathIn(path, folder string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// Exists returns an error that is [io/fs.ErrNotExist] if there is no file at a path.
func Exists(path string) error {
	_, err := os.Stat(path)
	return err
}
