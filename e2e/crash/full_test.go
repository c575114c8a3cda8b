//go:build unix

package crash_test

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

// ballast is a file that takes so many bytes of a disk until they are needed.
const (
	ballast      = "ballast"
	ballastBytes = 2 << 20
)

// inFile is the URL of a new ledger in a file, also if the tests run with PostgreSQL.
func inFile(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "ledger.db") }

// path is that of the ledger's file.
func (o *order) path() string { return strings.TrimPrefix(o.URL, "sqlite:") }

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
		folder := filepath.Dir(o.path())
		if err := mount(folder, o.Mount+ballastBytes); err != nil {
			return nil, fmt.Errorf("%w: %w", errCannot, err)
		}
		name := filepath.Join(folder, ballast)
		restore = func() error { return os.Remove(name) }
		return restore, os.WriteFile(name, make([]byte, ballastBytes), 0o600)
	}
	return nil, nil
}

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

// sizes are the room that a ledger gets: with PGFSM_CRASH_SIZES each from 4 KiB to 8 MiB, in steps of 64 KiB.
func sizes() (all []uint64) {
	if os.Getenv("PGFSM_CRASH_SIZES") == "" {
		return []uint64{64 << 10, 3 << 20}
	}
	for size := uint64(4 << 10); size <= 8<<20; size += 64 << 10 {
		all = append(all, size)
	}
	return all
}

// enough is the room in which a ledger takes some runs before it is full.
const enough = 3 << 20

// On a full disk nothing is called and callers get an error; calls continue when there is space again. Where there is no room for a
// ledger, none begins.
func TestNoRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		in   *syscall.SysProcAttr
		make func(size uint64) order
		want string
	}{
		{"disk-full", apart(), func(size uint64) order { return order{Mount: size} }, "the disk is full: make room"},
		{"file-size-limit", nil, func(size uint64) order { return order{Limit: size} }, "is the disk full or broken"},
	} {
		for _, size := range sizes() {
			t.Run(fmt.Sprintf("%s-%d-KiB", c.name, size>>10), func(t *testing.T) {
				o := c.make(size)
				o.URL, o.Load = inFile(t), filling
				fill(t, c.in, o, c.want, size >= enough)
			})
		}
	}
}

// fill has a process fill its ledger, and compares its calls with the ledger.
func fill(t *testing.T, in *syscall.SysProcAttr, o order, want string, some bool) {
	calls, sent := make(map[string]int), make(map[string]int)
	full, executed := 0, 0
	var faults []string
	p := startIn(t, in, o, func(p *process, m message) {
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
			if !strings.Contains(m.Error, want) || !strings.Contains(m.Error, o.path()) {
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
	if len(faults) == 1 && !some && full == 0 && len(calls) == 0 && strings.Contains(faults[0], o.path()) {
		t.Logf("no ledger begins: %s", faults[0])
		return
	}
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	p.done()
	if full < stuck || !maps.Equal(calls, sent) || executed < stuck || some && executed == stuck {
		t.Errorf("%d runs were refused; %d calls, %d are in the ledger, %d executed", full, len(calls), len(sent), executed)
	}
	t.Logf("%d runs were refused; %d calls, of which %d are executed", full, len(calls), executed)
}
