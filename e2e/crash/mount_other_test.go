//go:build unix && !linux

package crash_test

import (
	"errors"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

func mount(string, uint64) error { return errors.ErrUnsupported }
