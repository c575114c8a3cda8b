//go:build unix

package mcp

import "syscall"

// lanesWork: this system can be asked whether a connection is silent.
const lanesWork = true

// nothingThere reports whether a connection's descriptor, which does not block, is open and has nothing to read. What there is to
// read is lost: the connection is of no use then.
func nothingThere(fd uintptr) bool {
	var b [1]byte
	for {
		_, err := syscall.Read(int(fd), b[:])
		if err != syscall.EINTR {
			return err == syscall.EAGAIN
		}
	}
}

// takeThere reads what there is to read of a connection whose descriptor does not block, and returns how much that was: zero also if the
// connection has ended, which whoever reads it next is told.
func takeThere(fd uintptr, p []byte) int {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return max(0, n)
		}
	}
}
