//go:build !unix

package upstream

import (
	"errors"
	"os/exec"
	"os/user"
)

// Without process groups only the child itself can be ended.

func ownGroup(*exec.Cmd) {}

func runAs(*exec.Cmd, *user.User) error {
	return errors.New("this system cannot start servers as another user")
}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
