package tail

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pathVariable names the ledger in a process that does something with its tail.
const pathVariable = "PGFSM_TAIL_LEDGER"

// TestAnotherProcess is the process that [beside] starts: it executes each line and answers with one line.
func TestAnotherProcess(t *testing.T) {
	ledger := os.Getenv(pathVariable)
	if ledger == "" {
		t.Skip("only where another test asks for it")
	}
	f, err := Open(ledger, Options{capacity: room})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	answers := os.NewFile(3, "answers")
	stop := func() {}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var answer any
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "shared":
			answer, err = f.TryShared()
		case "exclusive":
			answer, err = f.TryExclusive()
		case "unlock":
			answer, err = "done", f.Unlock()
		case "pending":
			answer, err = f.Pending()
		case "begin":
			answer, err = "done", f.Begin()
		case "append":
			answer, err = "done", f.Append([]byte(rest))
		case "append-on": // until it is killed
			for n := 0; err == nil; n++ {
				if err = f.Append(fmt.Appendf(nil, "record %d", n)); errors.Is(err, ErrFull) {
					err = f.Restart()
					n = -1
				}
				fmt.Fprintln(answers, n)
			}
		case "ring":
			stop, answer = f.Ring()
		case "stop":
			stop()
			answer = "done"
		case "rung":
			answer = f.Rung()
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(answers, answer)
	}
}

// A process executes the orders of a test.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	tell    *os.File
	answers *bufio.Scanner
}

// beside starts a process. It ends with the test.
func beside(t *testing.T, ledger string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestAnotherProcess$")}
	p.cmd.Env = append(os.Environ(), pathVariable+"="+ledger)
	said := new(strings.Builder)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	commands, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.ExtraFiles, p.tell, p.answers = commands, []*os.File{theirs}, tell, bufio.NewScanner(answers)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	commands.Close()
	t.Cleanup(func() {
		tell.Close()
		answers.Close()
		if p.cmd.ProcessState != nil {
			return // it was killed
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("the other process: %v\n%s", err, said)
		}
	})
	return p
}

// does tells the process something, and returns its answer.
func (p *process) does(what string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.tell, what); err != nil {
		p.t.Fatal(err)
	}
	return p.answer(what)
}

func (p *process) answer(what string) string {
	p.t.Helper()
	if !p.answers.Scan() {
		p.t.Fatalf("%s: no answer, %v", what, p.answers.Err())
	}
	return p.answers.Text()
}

func (p *process) says(what, want string) {
	p.t.Helper()
	if got := p.does(what); got != want {
		p.t.Fatalf("%s: %s, want %s", what, got, want)
	}
}

// killed ends the process at whatever it does.
func (p *process) killed() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil || p.cmd.ProcessState.ExitCode() != -1 {
		p.t.Fatalf("it ended with %v instead of being killed", err)
	}
}

// unlocked opens a new tail, holds nothing, and starts so many processes beside.
func unlocked(t *testing.T, processes int) (*File, []*process) {
	t.Helper()
	f, ledger := fresh(t, room)
	if err := f.Unlock(); err != nil {
		t.Fatal(err)
	}
	var all []*process
	for range processes {
		all = append(all, beside(t, ledger))
	}
	return f, all
}

func TestLocksOfTwoProcesses(t *testing.T) {
	_, all := unlocked(t, 2)
	a, b := all[0], all[1]
	a.says("exclusive", "true")
	a.says("exclusive", "true") // again
	a.says("shared", "true")    // it has more than that
	b.says("shared", "false")
	b.says("exclusive", "false")
	a.says("unlock", "done")
	b.says("shared", "true")
	a.says("shared", "true")
	a.says("exclusive", "false") // and the shared one is gone
	b.says("exclusive", "true")
	a.says("shared", "false")
	b.says("unlock", "done")
	b.says("unlock", "done") // again
	a.says("exclusive", "true")
}

// TestTheLockEndsWithItsProcess, and what the process had appended is found.
func TestTheLockEndsWithItsProcess(t *testing.T) {
	f, all := unlocked(t, 1)
	a := all[0]
	a.says("exclusive", "true")
	a.says("begin", "done")
	a.says("append one", "done")
	a.says("append two", "done")
	if ok, err := f.TryShared(); ok || err != nil {
		t.Fatalf("TryShared = %t, %v beside the exclusive lock", ok, err)
	}
	a.killed()
	if ok, err := f.TryExclusive(); !ok || err != nil {
		t.Fatalf("TryExclusive = %t, %v after its process was killed", ok, err)
	}
	pends(t, f, true)
	same(t, "what it left", []string{"0 one", "1 two"}, left(t, f))
}

// TestKilledWhileItAppends: what it was told to be there is there, and at most one record that it was not.
func TestKilledWhileItAppends(t *testing.T) {
	for _, after := range []int{1, 2, 17, 120, 300} { // it begins again every hundred records or so
		f, all := unlocked(t, 1)
		a := all[0]
		a.says("exclusive", "true")
		a.says("begin", "done")
		last := a.does("append-on")
		for range after {
			last = a.answer("append-on")
		}
		a.killed()
		for a.answers.Scan() { // what it said before it was killed
			last = a.answers.Text()
		}
		if ok, err := f.TryExclusive(); !ok || err != nil {
			t.Fatalf("TryExclusive = %t, %v", ok, err)
		}
		var told int
		if _, err := fmt.Sscan(last, &told); err != nil {
			t.Fatalf("%q: %v", last, err)
		}
		got := left(t, f)
		if told++; len(got) != told && len(got) != told+1 && len(got) != 0 || len(got) == 0 && told < 60 {
			t.Fatalf("%d records are left, and it said that there are %d", len(got), told)
		}
		for i, r := range got {
			if r != fmt.Sprintf("%d record %d", i, i) {
				t.Errorf("record %d is %q", i, r)
			}
		}
	}
}

func TestTheBell(t *testing.T) {
	f, all := unlocked(t, 2)
	a, b := all[0], all[1]
	rung := func(want bool) {
		t.Helper()
		if got := f.Rung(); got != want {
			t.Fatalf("Rung = %t, want %t", got, want)
		}
	}
	rung(false)
	a.says("ring", "true")
	rung(true)
	b.says("rung", "true")
	b.says("ring", "true") // two at once
	a.says("stop", "done")
	a.says("stop", "done") // again
	rung(true)
	b.killed()
	rung(false)
	a.says("rung", "false")
	a.says("ring", "true")
	a.killed()
	rung(false)
	stop, ok := f.Ring() // in the same process
	if !ok {
		t.Fatal("it cannot be rung")
	}
	rung(true)
	stop()
	rung(false)
}

// TestRingingWhileSomebodyAsks: frequent calls of Rung do not prevent Ring in other processes, and notice it.
func TestRingingWhileSomebodyAsks(t *testing.T) {
	f, ledger := fresh(t, room)
	other, err := Open(ledger, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 20 {
		ringing := make(chan func())
		go func() {
			stop, ok := other.Ring()
			if !ok {
				t.Error("it cannot be rung")
			}
			ringing <- stop
		}()
		for !f.Rung() && !t.Failed() {
		}
		(<-ringing)()
		if f.Rung() {
			t.Fatal("it rings, and nobody does")
		}
	}
}

func TestABellThatIsNotThere(t *testing.T) {
	f, ledger := fresh(t, room)
	bell := ledger + Suffix + bellSuffix
	if err := os.Remove(bell); err != nil {
		t.Fatal(err)
	}
	if f.Rung() {
		t.Error("a bell that is not there rings")
	}
	if _, err := os.Lstat(bell); err != nil {
		t.Errorf("it was not made again: %v", err)
	}
	if err := os.Remove(bell); err != nil {
		t.Fatal(err)
	}
	stop, ok := f.Ring()
	if !ok || !f.Rung() {
		t.Error("who rings does not make it")
	}
	stop()
	if err := errors.Join(os.Remove(bell), os.Symlink(filepath.Join(filepath.Dir(bell), "nothing"), bell)); err != nil {
		t.Fatal(err)
	}
	if stop, ok := f.Ring(); ok {
		t.Error("a link was taken for a bell")
	} else {
		stop()
	}
	if !f.Rung() {
		t.Error("who cannot tell whether it rings keeps others waiting")
	}
	if _, err := os.Stat(bell); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v: something was made behind the link", err)
	}
}
