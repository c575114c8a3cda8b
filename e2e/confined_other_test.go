//go:build !linux

package e2e

import "os"

// errConfined is the exit code of a process that could not be confined.
const errConfined = 70

func frugal() { os.Exit(errConfined) }

func cramped() { os.Exit(errConfined) }
