//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of its own session and process group. The child and its descendants can then be signalled together.
// A terminal's Ctrl-C reaches only us, and the child has no terminal where it could overwrite our output or read our input.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
