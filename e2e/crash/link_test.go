//go:build unix

package crash_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/ledgertest"
)

// A message is what a process of the tests tells the test. It is one line that is shorter than what a pipe takes as a whole: so what
// the process said before it was killed arrives, and nothing of it arrives half.
type message struct {
	ID   int    `json:"id,omitzero"` // of a message that wants an answer
	Kind string `json:"kind"`
	Run  string `json:"run,omitzero"`

	Owner   string `json:"owner,omitzero"`   // ready: the id that the process's runs stand under
	By      string `json:"by,omitzero"`      // voted: who
	Approve bool   `json:"approve,omitzero"` // voted: what
	Status  string `json:"status,omitzero"`  // voted, ended: how the request stands with it
	Head    string `json:"head,omitzero"`    // ended: of the trace
	Binding string `json:"binding,omitzero"` // held
	Error   string `json:"error,omitzero"`   // fault, full
}

// Kinds of message.
const (
	isReady = "ready" // what was left over is ended, and the load begins
	isCall  = "call"  // tools/call: the process goes on when it is answered
	isVoted = "voted" // a vote was acknowledged
	isEnded = "ended" // a run ended, and that was acknowledged
	isHeld  = "held"  // a run waits
	isDone  = "done"  // the process did what it was told last
	isFull  = "full"  // the ledger takes no more
	isSent  = "sent"  // the ledger says that a run's call left
	isFault = "fault" // something broke that must not
)

// variable is where a process finds what it is to do.
const variable = "PGFSM_CRASHTEST"

// An order is what a process is to do.
type order struct {
	URL    string   `json:"url"` // of the ledger
	Load   string   `json:"load"`
	Tokens []string `json:"tokens"` // of people
	Seed   uint64   `json:"seed"`
	Hands  int      `json:"hands"` // how many work at the same time
	Place  string   `json:"place"` // where the process kills itself; empty: nowhere
	Nth    int64    `json:"nth"`   // at which update
	Limit  uint64   `json:"limit"` // of the bytes that a file may have; 0: none
	Mount  uint64   `json:"mount"` // the free bytes of a disk of its own that the process puts at the folder of the ledger; 0: none
}

// TestMain makes a process of the tests out of the test, where one is wanted.
func TestMain(m *testing.M) {
	text, wanted := os.LookupEnv(variable)
	if !wanted {
		os.Exit(ledgertest.Main(m))
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	l := &line{out: os.NewFile(3, "messages"), waiting: make(map[int]chan struct{}), told: make(chan string)}
	go l.listen(os.Stdin)
	if err := work(o, l); err != nil {
		l.tell(message{Kind: isFault, Error: err.Error()})
		os.Exit(1)
	}
}

// A line is a process's end of the connection with the test.
type line struct {
	out     *os.File
	mu      sync.Mutex
	last    int
	waiting map[int]chan struct{}
	told    chan string // lines that are no answers
}

// tell says something.
func (l *line) tell(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(m)
}

func (l *line) write(m message) {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	if err != nil { // the test is gone
		os.Exit(3)
	}
}

// ask says something and waits until it is answered.
func (l *line) ask(m message) {
	answered := make(chan struct{})
	l.mu.Lock()
	l.last++
	m.ID = l.last
	l.waiting[m.ID] = answered
	l.write(m)
	l.mu.Unlock()
	<-answered
}

// listen takes the answers, and hands on what else the test says.
func (l *line) listen(in io.Reader) {
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var id int
		if _, err := fmt.Sscanf(s.Text(), "answer %d", &id); err != nil {
			l.told <- s.Text()
			continue
		}
		l.mu.Lock()
		close(l.waiting[id])
		delete(l.waiting, id)
		l.mu.Unlock()
	}
	close(l.told)
}

// A process is one that a test has started.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	mu    sync.Mutex // guards in
	said  strings.Builder
	ended chan struct{} // all that it told was handed on, and it is gone
	err   error         // of Wait; set before ended
}

// start starts a process. Hear is called with each of its messages, in order.
func start(t *testing.T, o order, hear func(*process, message)) *process {
	t.Helper()
	return startIn(t, nil, o, hear)
}

// startIn is start with attributes of the process.
func startIn(t *testing.T, in *syscall.SysProcAttr, o order, hear func(*process, message)) *process {
	t.Helper()
	text, err := json.Marshal(o)
	check.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(os.Args[0], "-test.run=^$"), ended: make(chan struct{})}
	p.cmd.SysProcAttr = in
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	messages, theirs, err := os.Pipe()
	check.NoError(t, err)
	p.cmd.ExtraFiles = []*os.File{theirs}
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		messages.Close()
		if in != nil {
			t.Skipf("no process can be started like that here: %v", err)
		}
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		s := bufio.NewScanner(messages)
		for s.Scan() {
			var m message
			if err := json.Unmarshal(s.Bytes(), &m); err != nil {
				t.Errorf("a process says %q: %v", s.Text(), err)
				continue
			}
			hear(p, m)
		}
		messages.Close()
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		<-p.ended
	})
	return p
}

// answer lets the process go on behind a message.
func (p *process) answer(m message) { p.say(fmt.Sprintf("answer %d", m.ID)) }

// say tells the process something. One that was killed does not hear it.
func (p *process) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.in, text)
}

func (p *process) kill() { p.cmd.Process.Kill() }

// killed waits for the end, which must have been a kill.
func (p *process) killed() {
	p.t.Helper()
	<-p.ended
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("a process ended by itself: %v\n%s", p.err, p.said.String())
	}
}

// done waits for the end, which must have been a good one.
func (p *process) done() {
	p.t.Helper()
	<-p.ended
	if p.err != nil {
		p.t.Fatalf("a process failed: %v\n%s", p.err, p.said.String())
	}
}

// die kills this process as nothing else does: no deferred function runs, and nothing is flushed.
func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
