//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// nonBlocking opens a pipe without waiting for who writes to it.
const nonBlocking = syscall.O_NONBLOCK

// owner returns the user id that a file belongs to.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
