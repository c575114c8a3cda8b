//go:build !linux

package bench

import "syscall"

func noOrphan() *syscall.SysProcAttr { return nil }
