//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// inTheFile is a process that commits in the file while it holds the ledger.
const inTheFile = "in-the-file"

// TestTailStopper is no test, but what the processes of TestTailOfAStoppedProcess do: two commits, and in the midst of the second one all of the
// process is stopped. It ends by itself when it was continued.
func TestTailStopper(t *testing.T) {
	path, wanted := os.LookupEnv(crashPath)
	if !wanted {
		t.Skip("this is what the processes of TestTailOfAStoppedProcess run")
	}
	mode := os.Getenv(crashMode)
	s, err := sqlite.Open(path, sqlite.Options{Tail: mode != withoutTail})
	if err != nil {
		t.Fatal(err)
	}
	for _, stops := range []bool{false, true} {
		c, kind := newCall(newID(t)), ackLeft
		err := s.Update(t.Context(), func(tx ledger.Tx) (err error) {
			chained(&c, tx)
			if mode == inTheFile {
				kind, c.request.Seq = ackToken, c.events[0].Seq
				err = errors.Join(tx.PutToken(ledger.Token{ID: c.request.RunID, Seq: c.request.Seq}), tx.AddEvents(c.events[:1]))
			} else {
				err = c.leaves(tx)
			}
			if stops {
				err = errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
				// This thread may go on for a moment, until all are stopped.
				_, endErr := bufio.NewReader(os.Stdin).ReadString('\n')
				err = errors.Join(err, endErr)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(ack{kind, c.request.RunID, c.request.Seq})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// startStopped starts a process and waits until it is stopped, in the midst of its second commit. GoesOn lets it go on.
func startStopped(t *testing.T, path, mode string) (p *crashed, goesOn func()) {
	t.Helper()
	in, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p = startWorker(t, "TestTailStopper", path, mode, in)
	t.Cleanup(func() { errors.Join(p.cmd.Process.Kill(), in.Close(), say.Close()) })
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
	if !status.Stopped() {
		t.Fatalf("it has ended by itself, with %#x", status)
	}
	return p, func() {
		_, err := say.WriteString("go on\n")
		if err = errors.Join(err, p.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
			t.Error(err)
		}
	}
}

// TestTailOfAStoppedProcess: nobody reads or writes beside a process that is stopped, for however long, while it holds the ledger: others are told so.
// It goes on where it was when it is continued, and others have what it has acknowledged when it is killed.
func TestTailOfAStoppedProcess(t *testing.T) {
	const short, others = 40 * time.Millisecond, 20 // more than can read at once
	for _, mode := range []string{withTail, inTheFile, withoutTail} {
		for _, killed := range []bool{false, true} {
			name := fmt.Sprintf("%s/killed=%t", mode, killed)
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ledger.db")
				waiting, err := sqlite.Open(path, sqlite.Options{BusyTimeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				p, goesOn := startStopped(t, path, mode)
				said := []ack{<-p.acks}
				var mine ack
				commits := func(s *sqlite.Store) error {
					c := newCall(newID(t))
					err := s.Update(t.Context(), func(tx ledger.Tx) error { chained(&c, tx); return c.leaves(tx) })
					mine = ack{ackLeft, c.request.RunID, c.request.Seq}
					return err
				}
				for _, tail := range []bool{false, true} {
					s, err := sqlite.Open(path, sqlite.Options{Tail: tail, BusyTimeout: short})
					if err != nil {
						t.Fatal(err)
					}
					if err := commits(s); !errors.Is(err, sqlite.ErrLocked) {
						t.Errorf("tail %t: Update = %v, want ErrLocked", tail, err)
					}
					looksBeside(t, s, mode != withoutTail, said[0])
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
				var all sync.WaitGroup
				for i := range others {
					all.Go(func() {
						look := waiting.View
						if i%2 == 0 {
							look = waiting.Glance
						}
						if err := look(t.Context(), func(r ledger.Reader) error { _, err := r.Last(); return err }); err != nil {
							t.Error(err)
						}
					})
				}
				all.Go(func() {
					if err := commits(waiting); err != nil {
						t.Error(err)
					}
				})
				if killed {
					said = append(said, p.end(t)...)
				} else {
					goesOn()
					for a := range p.acks {
						said = append(said, a)
					}
					if err := p.cmd.Wait(); err != nil {
						t.Errorf("%v\n%s", err, p.said.String())
					}
				}
				all.Wait()
				if want := map[bool]int{false: 2, true: 1}[killed]; len(said) != want {
					t.Errorf("%d commits were acknowledged, want %d", len(said), want)
				}
				if err := waiting.Close(); err != nil {
					t.Error(err)
				}
				reader := openReader(t, path)
				found := dumped(t, reader)
				stands(t, name, reader, &found, append(said, mine), 0)
				if err := reader.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// looksBeside reads a ledger in which a writer was stopped. If the ledger is not held, it sees only committed data.
func looksBeside(t *testing.T, s *sqlite.Store, held bool, first ack) {
	t.Helper()
	for name, look := range map[string]func(context.Context, func(ledger.Reader) error) error{"View": s.View, "Glance": s.Glance} { // in any order
		err := look(t.Context(), func(r ledger.Reader) error {
			last, err := r.Last()
			if err == nil && last.Seq != first.seq {
				t.Errorf("%s: the ledger is seen to end with %d, want %d", name, last.Seq, first.seq)
			}
			return err
		})
		if held != errors.Is(err, sqlite.ErrLocked) || !held && err != nil {
			t.Errorf("%s = %v; held: %t", name, err, held)
		}
	}
}
