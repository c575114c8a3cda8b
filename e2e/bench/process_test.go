package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// endWithin is how long a process may take to end when it is told to.
const endWithin = 20 * time.Second

// A process is one of those that are measured, or measured with.
type process struct {
	*exec.Cmd
	host  string // where it listens
	stdin io.Closer
	said  lockedBuffer // what it said on standard error, its begin
	over  chan error   // what Wait returned
}

// lockedBuffer keeps the first 64 KiB.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p[:min(len(p), 64<<10-len(l.b))]...)
	return len(p), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// start starts a command, which ends with the test.
func start(t testing.TB, command *exec.Cmd) (*process, *bufio.Reader) {
	t.Helper()
	p := &process{Cmd: command, over: make(chan error, 1)}
	command.Stderr, command.SysProcAttr = &p.said, noOrphan()
	stdin, err := command.StdinPipe()
	check.NoError(t, err)
	p.stdin = stdin
	stdout, err := command.StdoutPipe()
	check.NoError(t, err)
	check.NoError(t, command.Start())
	go func() { p.over <- command.Wait() }()
	t.Cleanup(func() { p.end(t) })
	return p, bufio.NewReader(stdout)
}

// self starts this test binary in a role and waits until it listens.
func self(t testing.TB, role string, env ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	check.NoError(t, err)
	command := exec.Command(exe)
	command.Env = append(os.Environ(), append(env, roleAs+"="+role)...)
	p, stdout := start(t, command)
	line, err := stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not say where it listens: %v\n%s", role, err, p.said.String())
	}
	p.host = strings.TrimSpace(line)
	return p
}

// end ends the process: first it is asked, then it is killed. It does nothing if it has ended.
func (p *process) end(t testing.TB) {
	p.stdin.Close()
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.over:
		p.over <- err
	case <-time.After(endWithin):
		t.Errorf("%s did not end within %v\n%s", p.Path, endWithin, p.said.String())
		_ = p.Process.Kill()
		p.over <- <-p.over
	}
}

// usage is what the system says of a process. It is zero where the system has no /proc.
type usage struct {
	cpu      time.Duration // user and system, all threads, in steps of 10 ms
	resident int64         // bytes
}

func (p *process) usage() usage { return usageOf(p.Process.Pid) }

func usageOf(pid int) (u usage) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		u.cpu, err = cpuOf(stat)
	}
	if err != nil {
		return usage{}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	if fields := bytes.Fields(rest); len(fields) > 0 {
		kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		u.resident = kib << 10
	}
	return u
}

// cpuOf reads the time of a process out of its line in proc(5): fields 14 and 15, counted in hundredths of a second.
func cpuOf(stat []byte) (time.Duration, error) { return ticks(stat, 14, 15) }

// ticks adds two fields of a line in proc(5), which are counted in hundredths of a second.
func ticks(stat []byte, first, last int) (time.Duration, error) {
	at := bytes.LastIndexByte(stat, ')') // the name stands in parentheses and may hold anything
	if at < 0 {
		return 0, errors.New("no name")
	}
	fields := bytes.Fields(stat[at+1:]) // from field 3 on
	if len(fields) < last-2 {
		return 0, errors.New("too short")
	}
	var sum int64
	for _, field := range fields[first-3 : last-2] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond, nil
}
