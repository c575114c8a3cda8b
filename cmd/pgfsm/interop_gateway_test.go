//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An interopGateway is `pgfsm serve` as a process of its own.
type interopGateway struct {
	dir   string // of its configuration
	url   string // without a path
	admin string

	cmd    *exec.Cmd
	stderr *lockedBuffer
	ended  chan struct{}
}

// startGateway starts it with the pgfsm.yaml of a folder. It ends with the test.
func startGateway(t *testing.T, dir string, args ...string) *interopGateway {
	t.Helper()
	args = append([]string{"serve", "-c", filepath.Join(dir, "pgfsm.yaml"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	g := &interopGateway{dir: dir, cmd: exec.Command("pgfsm", args...), stderr: new(lockedBuffer), ended: make(chan struct{})}
	g.cmd.Dir, g.cmd.Stderr = dir, g.stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write := io.Pipe()
	g.cmd.Stdout = write
	g.cmd.WaitDelay = time.Second
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(g.ended); _ = g.cmd.Wait(); write.Close() }() // stop looks at the exit code
	t.Cleanup(func() {
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // it, and what it may have left
		<-g.ended
		if t.Failed() {
			t.Logf("the gateway said:\n%s", g.said())
		}
	})
	lines := make(chan [2]string, 1)
	go func() {
		defer close(lines)
		var said [2]string
		scan := bufio.NewScanner(read)
		for scan.Scan() {
			kind, url, _ := strings.Cut(scan.Text(), " ")
			switch kind {
			case "mcp":
				said[0] = strings.TrimSuffix(url, "/mcp")
			case "admin":
				said[1] = url
			}
			if said[0] != "" && said[1] != "" {
				lines <- said
				break
			}
		}
		_, _ = io.Copy(io.Discard, read) // so that it never waits for a reader
	}()
	select {
	case said, ok := <-lines:
		if !ok {
			t.Fatalf("the gateway ended before it named its addresses:\n%s", g.stderr)
		}
		g.url, g.admin = said[0], said[1]
	case <-time.After(startTime):
		t.Fatalf("the gateway names no addresses after %v:\n%s", startTime, g.stderr)
	}
	return g
}

// stopTime bounds how long a gateway without calls under way may take to end.
const stopTime = 30 * time.Second

// stop asks the gateway to end, which it must do well: with exit code 0, without a data race if it looks for them, and
// with no process left that it started.
func (g *interopGateway) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the gateway has ended before it was asked to: %v", err)
	}
	select {
	case <-g.ended:
	case <-time.After(stopTime):
		t.Fatalf("the gateway has not ended %v after it was asked to", stopTime)
	}
	if code := g.cmd.ProcessState.ExitCode(); code != exitYes || strings.Contains(g.stderr.String(), "DATA RACE") {
		t.Errorf("the gateway ended with exit code %d, want %d without data races", code, exitYes)
	}
}

// said is what the gateway said that is not of one call.
func (g *interopGateway) said() string {
	return strings.Join(slices.DeleteFunc(slices.Collect(strings.Lines(g.stderr.String())), func(line string) bool {
		return strings.Contains(line, "level=INFO msg=call ")
	}), "")
}

// A lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// judges is interopTools for the suites of others, which take minutes: their limits of time are for programs as they are built
// for users, so they judge those, and not ten times slower ones under the race detector. What CI runs first runs them.
func judges(t *testing.T) interop {
	t.Helper()
	if raced {
		t.Skip("the judges run without the race detector")
	}
	return interopTools(t)
}
