//go:build unix && !linux

package pgtest

import "syscall"

func noOrphan(*syscall.SysProcAttr) {}
