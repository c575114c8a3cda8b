//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a session and of a process group of its own: it and what it starts can be signalled together, a
// terminal's Ctrl-C reaches only us, and it has no terminal on which it could write over what a person reads, or type.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
