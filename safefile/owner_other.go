//go:build !unix

package safefile

import (
	"io/fs"
	"os"
)

// nonBlocking is 0 on systems where folders hold no pipes.
const nonBlocking = 0

// owner returns the id of our own user on systems where files have no comparable owner.
func owner(fs.FileInfo) int { return os.Getuid() }
