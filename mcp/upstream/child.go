package upstream

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// stepGrace is the time that a child gets to end after its input was closed, and again after
// SIGTERM. Twice that is less than closeGrace.
const stepGrace = time.Second

// inherited names the only variables of our environment that a child gets.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// A child is a server's process. It leads a process group of its own.
type child struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr tail
	grace  time.Duration
	exited chan struct{} // closed when the process has ended, its group is killed and its stderr read
	once   sync.Once
}

// startChild starts the server's command. The caller owns the process and ends it with kill, if it
// likes after shutDown.
func startChild(s Server) (*child, error) {
	c := &child{cmd: exec.Command(s.Command, s.Args...), exited: make(chan struct{}), grace: stepGrace}
	c.cmd.Env = childEnv(s)
	ownGroup(c.cmd)
	if s.User != nil {
		if err := runAs(c.cmd, s.User); err != nil {
			return nil, err
		}
	}

	// The child's ends of the pipes are closed here after the start: the child has copies.
	childStdin, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childStdin.Close()
	stdout, childStdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer childStdout.Close()
	c.stdin, c.stdout = stdin, stdout
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = childStdin, childStdout, &c.stderr
	c.cmd.WaitDelay = c.grace / 4 // a descendant that left the group may hold stderr open
	if err := c.cmd.Start(); err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}

	go c.reap()
	return c, nil
}

// childEnv returns the whole environment of a child.
func childEnv(s Server) []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if s.User != nil {
		env = append(env, "HOME="+s.User.HomeDir)
	}
	for _, e := range s.Env { // the last value of a name counts
		env = append(env, e.Name+"="+e.Value)
	}
	return env
}

// reap waits for the process and the rest of its stderr, and kills what is left in its group.
func (c *child) reap() {
	c.cmd.Wait() // ProcessState says how it ended
	killGroup(c.cmd)
	close(c.exited)
}

// shutDown asks the child to end, as MCP's stdio shutdown says: its input ends, then SIGTERM. The
// caller kills it next.
func (c *child) shutDown() {
	c.stdin.Close()
	if !waitFor(c.exited, c.grace) {
		terminateGroup(c.cmd)
		waitFor(c.exited, c.grace)
	}
}

// kill ends the child and its group at once and closes the pipes.
func (c *child) kill() {
	c.once.Do(func() {
		c.stdin.Close()
		select {
		case <-c.exited: // already reaped: another process may have its id
		default:
			killGroup(c.cmd)
		}
		c.stdout.Close()
	})
}
