package pgtest

import "syscall"

// noOrphan has the system stop a server at once when the thread that started it is gone, however that ended.
func noOrphan(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
