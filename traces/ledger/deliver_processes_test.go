package ledger_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// tellersVariable names the ledger of a process that delivers outcomes, where there is one.
const tellersVariable = "PGFSM_TELLERS"

const (
	tellers = 4  // at a time, in each of two processes
	endings = 64 // held runs that have ended
)

// TestTellers is what each of the processes does that [TestDeliverOfTwoProcesses] starts: all of its tellers deliver every
// outcome, and it says how often each was delivered for the first time.
func TestTellers(t *testing.T) {
	url := os.Getenv(tellersVariable)
	if url == "" {
		t.Skip("only where another test asks for it")
	}
	l := onURL(t, url)
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.NewFile(3, "counts"))
	if err := out.Encode("ready"); err != nil {
		t.Fatal(err)
	}
	if !in.Scan() {
		t.Fatal("nobody says what has ended")
	}
	ids := strings.Fields(in.Text())
	firsts := make([]int, len(ids))
	var all sync.WaitGroup
	var mu sync.Mutex
	for range tellers {
		all.Go(func() {
			for i, id := range ids {
				first, err := l.Deliver(context.Background(), id, ledger.ByRepeat)
				mu.Lock()
				if err != nil {
					t.Error(err)
				}
				if first {
					firsts[i]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := out.Encode(firsts); err != nil {
		t.Fatal(err)
	}
}

// Two processes on one file deliver the same outcomes at the same time: each is delivered for the first time once.
func TestDeliverOfTwoProcesses(t *testing.T) {
	url := ledgertest.NewURL(t)
	c := deskAtURL(t, url, ledgertest.NewClock(t))
	c.Clock.ToNow()
	alice := c.Approver(alice)
	var ids []string
	for range endings {
		q := c.Hold(1)
		v := ledgertest.Ballot(q, alice)
		v.Approve = false
		c.Cast(v)
		ids = append(ids, q.RunID)
	}
	if ended, err := c.Recover(context.Background(), traces.NewReplayer(c.Machine, nil)); err != nil || len(ended) != endings {
		t.Fatalf("Recover() = %d runs, %v", len(ended), err)
	}
	var processes []*voter
	for range 2 {
		processes = append(processes, c.process("^TestTellers$", tellersVariable+"="+url))
	}
	for _, p := range processes {
		var ready string
		if err := p.counts.Decode(&ready); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range processes {
		if _, err := fmt.Fprintln(p.in, strings.Join(ids, " ")); err != nil {
			t.Fatal(err)
		}
	}
	sum := make([]int, endings)
	for _, p := range processes {
		var firsts []int
		if err := p.counts.Decode(&firsts); err != nil || len(firsts) != endings {
			t.Fatalf("a process counts %d, %v", len(firsts), err)
		}
		for i, n := range firsts {
			sum[i] += n
		}
	}
	if !slices.Equal(sum, slices.Repeat([]int{1}, endings)) {
		t.Errorf("so often the outcomes were delivered for the first time: %v", sum)
	}
	c.Look(func(r ledger.Reader) error {
		_, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{})
		return err
	})
}
