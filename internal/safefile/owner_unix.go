//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// nonBlocking opens a pipe without waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK

// ownerName returns the ids of the user and the group that a file belongs to, or -1.
func ownerName(info fs.FileInfo) (uid, gid int) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return -1, -1
}

// keepGroup gives a new file the group of the one that it replaces. Users outside that group may
// not do so: their file keeps their own group.
func keepGroup(f *os.File, replaced fs.FileInfo) {
	_, gid := ownerName(replaced)
	_ = f.Chown(-1, gid)
}

// checkTrusted returns why another user can have written the file at path, or can replace it: a
// user who may write a folder may rename a file in it. It checks the folder of path and, if path is
// a symbolic link, the folder of the file.
func checkTrusted(path string, info fs.FileInfo) error {
	uid, _ := ownerName(info)
	if err := CheckOwner(info.Mode(), uid, os.Getuid()); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(real)} {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		uid, gid := ownerName(info)
		if err := CheckFolder(info.Mode(), uid, os.Getuid(), privateGroup(uid, gid)); err != nil && !readOnly(dir) {
			return fmt.Errorf("its folder %s %w %s", dir, err, dir)
		}
	}
	return nil
}

// privateGroup reports whether a group is the private one of a user: the user's own, of the same
// name. A umask of 002 is usual with such groups.
func privateGroup(uid, gid int) bool {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil || u.Gid != strconv.Itoa(gid) {
		return false
	}
	g, err := user.LookupGroupId(u.Gid)
	return err == nil && g.Name == u.Username
}

// readOnly reports whether a folder is in a file system that is mounted read-only, such as a
// ConfigMap of Kubernetes, whose folder has the mode 0777.
func readOnly(dir string) bool {
	const write = 2 // W_OK
	return errors.Is(syscall.Access(dir, write), syscall.EROFS)
}
