package bench

import "syscall"

// noOrphan has the system end a process when the one that started it is gone, however that ended. The system minds the thread
// that started it; Go's live as long as their process, unless a goroutine ends that had locked one, and none here does.
func noOrphan() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
