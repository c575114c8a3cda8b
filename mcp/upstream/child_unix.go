//go:build unix

package upstream

import (
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ownGroup makes the child the leader of its own session and process group. The child and its
// descendants can then be signalled together. A terminal's Ctrl-C reaches only us, and the child
// has no terminal where it could overwrite our output or read our input.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// runAs makes the child run as a user, with the groups of this user.
func runAs(cmd *exec.Cmd, u *user.User) error {
	groups, err := u.GroupIds()
	if err != nil {
		return err
	}

	var ids []uint32
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return err
		}
		ids = append(ids, uint32(id))
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}
	return nil
}

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
