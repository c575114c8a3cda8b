package crash_test

import (
	"os"
	"strconv"
	"syscall"
)

// apart lets a process have disks of its own, which nobody else sees.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

// mount puts a disk of a size in bytes at a folder.
func mount(folder string, size uint64) error {
	return syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+strconv.FormatUint(size, 10))
}
