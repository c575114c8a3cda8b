package e2e

import (
	"testing"

	"golang.org/x/sys/unix"

	"pgfsm/internal/test/tool"
)

// fillDisk keeps a gateway that runs from writing another byte to any file: what a full disk does.
func fillDisk(t *testing.T, s *served, _ string) func() {
	t.Helper()
	var was unix.Rlimit
	limit := func(to *unix.Rlimit) {
		t.Helper()
		if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, to, &was); err != nil {
			tool.Skip(t, "the limits of a process cannot be changed here: "+err.Error())
		}
	}
	limit(nil)
	free := was
	limit(&unix.Rlimit{Cur: 1, Max: was.Max})
	return func() { limit(&free) }
}
