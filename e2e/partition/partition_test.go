//go:build linux && !race

// The race detector sees the processes of the test only from outside, so it does not run it.

package partition_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"pgfsm/traces/ledger"
)

// How long the test is: at least so many operations and so many faults. Without them it does not run.
const (
	operationsVariable = "PGFSM_PARTITION_OPERATIONS"
	faultsVariable     = "PGFSM_PARTITION_FAULTS"
)

// long is from how many operations on every check must have had something to look at.
const long = 5000

const seed = 20261123

func wanted(t *testing.T, variable string) int {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		t.Skip("make test-postgres runs a short form of this test, and make partition a long one")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number", variable, text)
	}
	return n
}

// TestPartition has callers and approvers use three gateways while connections, processes and the database fail. Afterwards it checks what clients
// saw and what arrived at the server.
func TestPartition(t *testing.T) {
	operations, faults := wanted(t, operationsVariable), wanted(t, faultsVariable)
	b, c := newBed(t)
	c.starts(seed)
	began := time.Now()
	n := &nemesis{bed: b, r: rand.New(rand.NewPCG(seed, 1)), count: make(map[string]int)}
	for done := 0; !t.Failed() && (done < faults || int(c.operations.Load()) < operations); done++ {
		n.strikes(done)
	}
	close(c.over)
	c.all.Wait()
	b.settles()
	took := time.Since(began)
	for _, g := range b.gateways {
		g.end(syscall.SIGTERM)
	}
	for _, args := range [][]string{{"ledger", "verify"}, {"ledger", "rebuild", "--check"}} {
		if out, err := b.command(args...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	k := b.recorded(t, c.history)
	k.checks(t)
	t.Logf("%d operations, %d runs and %d votes in %v; faults: %v; looked at: %v; told: %v",
		c.operations.Load(), len(k.runs), len(c.history.votes), took.Round(time.Second), n.count, k.seen, c.told)
	for _, what := range []string{
		"sent", "arrived", "executed", "results", "refused", "denied", "revoked", "asked after", "voted after", "sent with votes", "counted", "votes",
	} {
		if k.seen[what] == 0 && operations >= long {
			t.Errorf("nothing was %s: this was not checked", what)
		}
	}
}

// settles waits until the gateways have made what people agreed to.
func (b *bed) settles() {
	b.t.Helper()
	for end := time.Now().Add(startWithin); ; time.Sleep(200 * time.Millisecond) {
		for _, g := range b.gateways {
			g.listens()
		}
		left := ""
		err := b.look(b.t.Context(), func(r ledger.Reader) error {
			left = ""
			for q, err := range r.Runs(ledger.Filter{Open: true}) {
				if err != nil {
					return err
				}
				if q.Status != ledger.Pending {
					left = q.RunID + " " + string(q.Status)
				}
			}
			return nil
		})
		if err == nil && left == "" {
			return
		}
		if time.Now().After(end) {
			b.t.Errorf("run %s is left, %v", left, err)
			return
		}
	}
}
