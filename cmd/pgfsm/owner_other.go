//go:build !unix

package main

import (
	"io/fs"
	"os"
)

// nonBlocking: there are no pipes with names in folders here.
const nonBlocking = 0

// owner is our own user where files have none that can be compared.
func owner(fs.FileInfo) int { return os.Getuid() }
