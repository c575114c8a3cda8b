//go:build unix

package ledger_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of processors so far: a figure that other work on the machine hardly moves.
func cpuTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
