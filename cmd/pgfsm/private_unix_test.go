//go:build unix

package main

import "syscall"

// privately has everything that is written from here on belong to us alone, whatever the user's umask is.
func privately() { syscall.Umask(0o077) }
