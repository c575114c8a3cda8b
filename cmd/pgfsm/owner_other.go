//go:build !unix

package main

import (
	"io/fs"
	"os"
)

// owner is our own user where files have none that can be compared.
func owner(fs.FileInfo) int { return os.Getuid() }
