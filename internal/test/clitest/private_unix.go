//go:build unix

package clitest

import "syscall"

// Private makes the files that this process writes readable by its user alone, whatever the umask is.
func Private() { syscall.Umask(0o077) }
