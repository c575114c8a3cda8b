package sqlite

import "os"

// Exists returns an error that is [io/fs.ErrNotExist] if there is no file at a path.
func Exists(path string) error {
	_, err := os.Stat(path)
	return err
}
