//go:build !unix

package sqlite

import "io/fs"

// names assumes one name, because the number is unknown on this system.
func names(fs.FileInfo) uint64 { return 1 }
