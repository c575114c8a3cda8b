//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// used is what this process has used so far; 0 where the system does not say.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
