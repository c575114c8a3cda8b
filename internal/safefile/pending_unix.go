//go:build !windows

package safefile

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// A Pending file is written beside a file, and takes its place in one step.
type Pending = renameio.PendingFile

// NewPending returns a file that will take the place of path. An existing file keeps its mode; a new one gets the given mode.
func NewPending(path string, mode fs.FileMode) (*Pending, error) {
	return renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode), renameio.WithExistingPermissions())
}

// Write writes a file in one step. An existing file keeps its mode; a new one gets the given mode, less the umask.
func Write(path string, text []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, text, mode, renameio.WithTempDir(filepath.Dir(path)))
}
