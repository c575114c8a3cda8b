//go:build !unix

package upstream

import "os/exec"

// Without process groups only the child itself can be ended.

func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
