//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// owner returns the user id that a file belongs to.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
