package pgtest

import "syscall"

// noOrphan has the system stop a server at once when the thread that started it ends, for any reason.
func noOrphan(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
