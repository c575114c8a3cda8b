//go:build unix

package safefile

import (
	"io/fs"
	"syscall"
)

// nonBlocking opens a pipe without waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK

// owner returns the id of the user that a file belongs to, or -1.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
