package upstream

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// stepGrace is how long a child may take for each step of ending: reacting to the end of its input, then to SIGTERM.
// Two of them fit into closeGrace.
const stepGrace = time.Second

// inherited are the only variables of our environment that a child gets.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// A child is a server's process, alone in its process group with what it starts itself.
type child struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr tail
	grace  time.Duration
	exited chan struct{} // closed when the process is reaped, its group killed and its stderr read
	once   sync.Once
}

// startChild starts the server's command. The caller owns the process and ends it with end or kill.
func startChild(s Server) (*child, error) {
	c := &child{cmd: exec.Command(s.Command, s.Args...), exited: make(chan struct{}), grace: stepGrace}
	c.cmd.Env = childEnv(s.Env)
	ownGroup(c.cmd)
	var theirs []*os.File
	var stderr *os.File
	var err error
	pipe := func(reader bool) (ours, other *os.File) {
		if err != nil {
			return nil, nil
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return nil, nil
		}
		if !reader {
			r, w = w, r
		}
		theirs = append(theirs, w)
		return r, w
	}
	var in, out, errs *os.File
	c.stdin, in = pipe(false)
	c.stdout, out = pipe(true)
	stderr, errs = pipe(true)
	if err == nil {
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, errs
		err = c.cmd.Start()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{c.stdin, c.stdout, stderr} {
			if f != nil {
				f.Close()
			}
		}
		return nil, err
	}
	go c.reap(stderr)
	return c, nil
}

// childEnv is the whole environment of a child.
func childEnv(named []Header) []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, e := range named { // of two settings of a name the later counts
		env = append(env, e.Name+"="+e.Value)
	}
	return env
}

// reap waits for the process, kills what it left behind in its group, and reads the rest of its stderr.
func (c *child) reap(stderr *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&c.stderr, stderr)
	}()
	c.cmd.Wait() // how it ended stands in ProcessState
	killGroup(c.cmd)
	waitFor(read, c.grace/4) // a descendant that left the group may hold the pipe open
	stderr.Close()
	<-read
	close(c.exited)
}

// end asks the child to end, in the order of MCP's stdio shutdown: its input ends, SIGTERM, SIGKILL.
func (c *child) end() error {
	c.stdin.Close()
	if !waitFor(c.exited, c.grace) {
		terminateGroup(c.cmd)
		waitFor(c.exited, c.grace)
	}
	c.kill()
	if !waitFor(c.exited, c.grace) {
		return errors.New("the process does not end")
	}
	return nil
}

// kill ends the child and its group at once and closes the pipes.
func (c *child) kill() {
	c.once.Do(func() {
		c.stdin.Close()
		select {
		case <-c.exited: // reaped: its id may already be another's
		default:
			killGroup(c.cmd)
		}
		c.stdout.Close()
	})
}
