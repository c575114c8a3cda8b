package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// The environment of a process that the suite starts names the job, the store's path and an owner. A line on its standard input tells the
// process to continue. It reports its progress on file descriptor 3.
const (
	jobVariable   = "PGFSM_STORETEST_JOB"
	pathVariable  = "PGFSM_STORETEST_PATH"
	ownerVariable = "PGFSM_STORETEST_OWNER"

	jobCount = "count"
	jobOwn   = "own"
	said     = 3 // the file descriptor for progress
)

// work does the job of a process that the suite starts.
func work(t *testing.T, h Harness, job string) {
	s := h.open(t, os.Getenv(pathVariable))
	say := os.NewFile(said, "said")
	defer say.Close()
	wait := func(ready string) {
		fmt.Fprintln(say, ready)
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			t.Fatalf("nobody says go: %v", err)
		}
	}
	switch job {
	case jobCount:
		wait("open")
		if err := count(s); err != nil {
			t.Error(err)
		}
	case jobOwn:
		release, err := s.AcquireOwnership(context.Background(), os.Getenv(ownerVariable))
		check.NoError(t, err)
		wait("owned")
		if err := release(); err != nil {
			t.Error(err)
		}
	default:
		t.Fatalf("unknown job %q", job)
	}
}

// A child is a process that does a job.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *bufio.Reader
	out  strings.Builder
}

// begin starts a process, and waits for the progress report ready.
func begin(t *testing.T, job, path, owner, ready string) *child {
	t.Helper()
	top, _, _ := strings.Cut(t.Name(), "/")
	r, w, err := os.Pipe()
	check.NoError(t, err)
	c := &child{cmd: exec.Command(os.Args[0], "-test.run=^"+top+"$"), said: bufio.NewReader(r)}
	c.cmd.Env = append(os.Environ(), jobVariable+"="+job, pathVariable+"="+path, ownerVariable+"="+owner)
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = &c.out, &c.out, []*os.File{w}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	check.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		c.cmd.Process.Kill() // the process has ended already unless the test failed
		r.Close()
	})
	w.Close()
	if line, err := c.said.ReadString('\n'); err != nil || strings.TrimSpace(line) != ready {
		c.cmd.Wait()
		t.Fatalf("the process says %q, %v, want %q:\n%s", line, err, ready, c.out.String())
	}
	return c
}

func (c *child) goOn(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.in, "go\n"); err != nil {
		t.Error(err)
	}
}

func (c *child) end(t *testing.T) {
	t.Helper()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, c.out.String())
	}
}

func processIncrements(t *testing.T, h Harness) {
	if !h.Processes {
		t.Skip("this store is in one process")
	}
	s, path := h.fresh(t)
	var children []*child
	for range 2 {
		children = append(children, begin(t, jobCount, path, "", "open"))
	}
	for _, c := range children {
		c.goOn(t)
	}
	if err := count(s); err != nil {
		t.Error(err)
	}
	for _, c := range children {
		c.end(t)
	}
	counted(t, s, 3*counters*rounds)
}

func killedOwner(t *testing.T, h Harness) {
	if !h.Processes {
		t.Skip("this store is in one process")
	}
	s, path := h.fresh(t)
	ended, killed := id(t), id(t)
	first, second := begin(t, jobOwn, path, ended, "owned"), begin(t, jobOwn, path, killed, "owned")
	wantGone(t, s, ended, false)
	wantGone(t, s, killed, false)
	if _, err := s.AcquireOwnership(context.Background(), killed); err == nil {
		t.Error("an owner is owned by two processes")
	}
	first.goOn(t)
	first.end(t)
	wantGone(t, s, ended, true)
	wantGone(t, s, killed, false)
	check.NoError(t, second.cmd.Process.Kill())
	if second.cmd.Wait() == nil {
		t.Error("the process was not killed")
	}
	for deadline := time.Now().Add(10 * h.Lease); time.Now().Before(deadline); time.Sleep(h.Lease / 10) {
		if is, err := s.OwnerGone(context.Background(), killed); is || err != nil {
			break
		}
	}
	wantGone(t, s, killed, true)
	wantGone(t, s, killed, true)
}
