//go:build unix

package mcp

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the processor time that this process has used: what other work on the machine does not move.
func cpuTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
