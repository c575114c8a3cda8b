package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errConfined is the exit code of a process that could not be confined.
const errConfined = 70

func confinedExit(err error) {
	fmt.Fprintln(os.Stderr, "cannot be confined:", err)
	os.Exit(errConfined)
}

// pgfsmPath is where pgfsm is.
func pgfsmPath() string {
	path, err := exec.LookPath("pgfsm")
	if err != nil {
		confinedExit(err)
	}
	return path
}

// frugal is pgfsm in a process that the kernel kills when it asks for a socket, or opens a file for writing
// (seccomp(2), for all threads).
func frugal() {
	deny := uint8(4)
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: deny, K: unix.SYS_SOCKET},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: deny - 2, K: unix.SYS_OPENAT},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 32}, // the low half of openat's flags
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 1,
			K: unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		confinedExit(err)
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(filter)))
	if errno != 0 {
		confinedExit(errno)
	}
	confinedExit(unix.Exec(pgfsmPath(), append([]string{"pgfsm"}, os.Args[1:]...), os.Environ()))
}

// cramped is pgfsm in a process that cannot write a file beyond the number of bytes in the variable CRAMPED: what a
// full disk does, and unlike a folder's permission bits it binds the system's own user too.
func cramped() {
	most, err := strconv.ParseUint(os.Getenv("CRAMPED"), 10, 64)
	if err != nil {
		confinedExit(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		confinedExit(err)
	}
	confinedExit(unix.Exec(pgfsmPath(), append([]string{"pgfsm"}, os.Args[1:]...), os.Environ()))
}
