//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/traces/ledger"
)

// ballast is what takes room on a disk until it is needed.
const ballast = "ballast"

// confine brings the process into the condition that the test wants, and returns what ends it.
func (o *order) confine() (restore func() error, err error) {
	switch {
	case o.Limit > 0:
		signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit fails then, and the process lives
		var was syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			return nil, err
		}
		restore = func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was) }
		return restore, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: o.Limit, Max: was.Max})
	case o.Mount > 0:
		folder := filepath.Dir(o.Path)
		if err := mount(folder, o.Mount); err != nil {
			return nil, fmt.Errorf("%w: %w", errCannot, err)
		}
		name := filepath.Join(folder, ballast)
		restore = func() error { return os.Remove(name) }
		return restore, os.WriteFile(name, make([]byte, o.Mount/4), 0o600)
	case o.Nobody && os.Getuid() == 0:
		return nil, syscall.Setuid(nobody)
	}
	return nil, nil
}

// nobody is a user who has nothing but what a test gives them.
const nobody = 65534

// errCannot means that this machine does not let the test have what it wants.
var errCannot = errors.New("not on this machine")

// stuck is after how many runs in a row that are refused a ledger is full for good: a few pages may be free that one run's
// second commit has no use for, and the next one's first has.
const stuck = 5

// fills plays runs until the ledger takes no more, and some when there is room again. It tells what the ledger has then.
func (w *worker) fills(restore func() error) error {
	calls, called := 0, w.call
	w.call = func(run string) { calls++; called(run) }
	for refused := 0; refused < stuck; {
		before := calls
		if _, err := w.fresh(0); err == nil {
			refused = 0
			continue
		} else if calls > before {
			refused = 0 // its second commit was: its call had left
		} else {
			w.tell(message{Kind: isFull, Error: err.Error()})
			refused++
		}
	}
	if err := restore(); err != nil {
		return err
	}
	if err := w.recovers(); err != nil {
		return err
	}
	for range stuck {
		if _, err := w.fresh(0); err != nil {
			return fmt.Errorf("there is room again: %w", err)
		}
	}
	return w.View(context.Background(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			switch {
			case err != nil:
				return err
			case q.Ended == "":
				return fmt.Errorf("run %s is left %s", q.RunID, q.Status)
			case q.Sent != "":
				w.tell(message{Kind: isSent, Run: q.RunID, Status: string(q.Status)})
			}
		}
		_, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{})
		return err
	})
}

// On a full disk nothing is called and callers get an error; calls continue when there is space again.
func TestNoRoom(t *testing.T) {
	const size = 3 << 20
	for _, c := range []struct {
		name  string
		in    *syscall.SysProcAttr
		order order
		want  string
	}{
		{"disk-full", apart(), order{Mount: size}, "the disk is full: make room"},
		{"file-size-limit", nil, order{Limit: size}, "is the disk full or broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.order.Path, c.order.Load = filepath.Join(t.TempDir(), "ledger.db"), filling
			calls, sent := make(map[string]int), make(map[string]int)
			full, executed := 0, 0
			var faults []string
			p := startIn(t, c.in, c.order, func(p *process, m message) {
				switch m.Kind {
				case isCall:
					calls[m.Run]++
					p.answer(m)
				case isSent:
					sent[m.Run]++
					if m.Status == string(ledger.Executed) {
						executed++
					}
				case isFull:
					full++
					if !strings.Contains(m.Error, c.want) || !strings.Contains(m.Error, c.order.Path) {
						t.Errorf("the error is %s", m.Error)
					}
				case isFault:
					faults = append(faults, m.Error)
				}
			})
			<-p.ended
			if len(faults) == 1 && strings.Contains(faults[0], errCannot.Error()) {
				t.Skip(faults[0])
			}
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			p.done()
			if full < stuck || !maps.Equal(calls, sent) || executed <= stuck {
				t.Errorf("%d runs were refused; %d calls, %d are in the ledger, %d executed", full, len(calls), len(sent), executed)
			}
			t.Logf("%d runs were refused; %d calls, of which %d are executed", full, len(calls), executed)
		})
	}
}

// A file that may not be written is refused at the start, and nothing is called.
func TestReadOnlyFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	tokens(t, path, nil)
	for name, mode := range map[string]os.FileMode{filepath.Dir(folder): 0o755, folder: 0o755, path: 0o400} { // in any order
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 { // whom no permission stops
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	var told []message
	p := start(t, order{Path: path, Load: steady, Hands: 1, Nobody: true}, func(_ *process, m message) { told = append(told, m) })
	<-p.ended
	if len(told) != 1 || told[0].Kind != isFault || !strings.Contains(told[0].Error, "this user needs") || !strings.Contains(told[0].Error, path) {
		t.Errorf("the process says %+v", told)
	}
}
