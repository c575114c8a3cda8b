//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group of its own: it and what it starts can be signalled together,
// and a terminal's Ctrl-C reaches only us.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
