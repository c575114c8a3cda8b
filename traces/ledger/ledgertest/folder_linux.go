package ledgertest

import (
	"os"
	"syscall"
	"testing"
)

// folder makes a folder for a ledger. It uses the file system in memory, where flushes take no time, if that has room.
func folder(tb testing.TB) string {
	tb.Helper()
	const inMemory, room = "/dev/shm", 256 << 20
	var s syscall.Statfs_t
	if syscall.Statfs(inMemory, &s) == nil && s.Bavail*uint64(s.Bsize) >= room {
		if dir, err := os.MkdirTemp(inMemory, "pgfsm"); err == nil {
			tb.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return tb.TempDir()
}
