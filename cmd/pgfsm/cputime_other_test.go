//go:build !unix

package main

import (
	"testing"
	"time"
)

// cpuTime is not known here.
func cpuTime(testing.TB) time.Duration { return 0 }
