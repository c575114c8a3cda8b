//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// unprivileged returns a user for PostgreSQL, which refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// command returns a command that runs a program of PostgreSQL as the cluster's user.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"} // without PGDATA, PGPORT or PGOPTIONS of the environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	noOrphan(cmd.SysProcAttr)
	return cmd
}

// tool runs a program and waits for its end.
func (c *Cluster) tool(name string, args ...string) error {
	if out, err := c.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// A process is a running server.
type process struct {
	*os.Process
	ended chan struct{}
}

// Start starts a server that is stopped, and waits until it answers.
func (c *Cluster) Start() error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := c.start()
		if err == nil || time.Now().After(end) || !bytes.Contains(c.lastLog(), []byte("is still in use")) {
			return err
		} // the main process was killed, and its child processes have not noticed yet
	}
}

func (c *Cluster) start() error {
	log, err := os.Create(c.log())
	if err != nil {
		return err
	}
	args := []string{
		"-D", c.data(), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(c.port), "-c", "unix_socket_directories=" + c.dir,
		"-c", "max_connections=200", "-c", "shared_buffers=32MB", "-c", "wal_keep_size=256MB",
	}
	cmd := c.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{ended: make(chan struct{})}
	started := make(chan error)
	go func() { // the system kills the server when the thread that started it ends: this goroutine keeps its thread
		runtime.LockOSThread()
		defer close(p.ended)
		err := cmd.Start()
		p.Process = cmd.Process
		started <- err
		if err == nil {
			cmd.Wait()
		}
		log.Close()
	}()
	if err := <-started; err != nil {
		return err
	}
	c.process = p
	return c.ready()
}

// ready waits until the server accepts connections.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL(Superuser, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.process.ended:
			c.process = nil
			return fmt.Errorf("the server does not start:\n%s", c.lastLog())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w\n%s", err, c.lastLog())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastLog returns the end of the server's log.
func (c *Cluster) lastLog() []byte {
	text, err := os.ReadFile(c.log())
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-30):], nil)
}

// PID returns the id of the server's main process, the parent of its other processes.
func (c *Cluster) PID() int { return c.process.Pid }

// Stop stops the server and lets it write a checkpoint. Connections are closed.
func (c *Cluster) Stop() error { return c.stop(syscall.SIGINT) }

// StopAtOnce stops the server without a checkpoint, as a crash does: the server recovers from its log at the next start.
func (c *Cluster) StopAtOnce() error { return c.stop(syscall.SIGQUIT) }

// Kill kills the server's main process. Its other processes end when they notice.
func (c *Cluster) Kill() error { return c.stop(syscall.SIGKILL) }

func (c *Cluster) stop(how syscall.Signal) error {
	if err := c.process.Signal(how); err != nil {
		return err
	}
	select {
	case <-c.process.ended:
		c.process = nil
		return nil
	case <-time.After(patience):
		return fmt.Errorf("the server does not stop:\n%s", c.lastLog())
	}
}
