package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	voters = 32 // in each of the two processes
	takers = 2  // that try to resume the run, in each process
)

// contestRounds is how often the processes race; make crash asks for a thousand rounds.
func contestRounds(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("PGFSM_CRASH_ROUNDS")
	if !set {
		return 25
	}
	n, err := strconv.Atoi(text)
	check.NoError(t, err)
	return n
}

// A contest is one round: what the ledger acknowledged, and the calls that were made.
type contest struct {
	*testing.T
	request       ledger.RunRow
	bundle        *policy.Bundle
	calls         atomic.Int32
	told, decided atomic.Int32 // acknowledged votes, and those of them that decided
	denied        atomic.Bool  // a denial was acknowledged
}

// Call is the server.
func (c *contest) Call(context.Context, *states.CallTool) states.Event {
	if n := c.calls.Add(1); n > 1 || c.denied.Load() {
		c.Errorf("run %s: call number %d, acknowledged as denied: %t", c.request.RunID, n, c.denied.Load())
	}
	return &states.ToolReturned{Result: canonical.Text(statestest.GoodResult)}
}

// vote casts a vote, which may come too late.
func (c *contest) vote(d *fixture, by ledger.Caller, approve bool) {
	ballot := ledgertest.Ballot(c.request, by)
	ballot.Approve = approve
	q, err := d.Vote(c.Context(), ballot)
	switch {
	case errors.Is(err, ledger.ErrDecided), errors.Is(err, ledger.ErrVoted):
		return
	case err != nil:
		c.Error(err)
		return
	}

	c.told.Add(1)
	if q.Status != ledger.Pending {
		c.decided.Add(1)
	}
	if !approve {
		if c.denied.Store(true); c.calls.Load() > 0 {
			c.Errorf("run %s was called, and then %s was told that it is denied", c.request.RunID, by.Name)
		}
	}
}

// take tries to resume the run until it has ended.
func (c *contest) take(d *fixture) {
	id, world := c.request.RunID, ledger.ResumeOptions{Bundle: c.bundle, Ports: func(*states.Run) *states.Live {
		w := statestest.NewWorld()
		return &states.Live{Tools: w, Completer: w, Caller: c}
	}}
	err := ledger.Poll(c.Context(), time.Millisecond, func() (bool, error) {
		q := d.Run(id)
		if q.Ended != "" || q.Status == ledger.Pending {
			return q.Ended != "", nil
		}
		_, err := d.resume(id, world)
		if errors.Is(err, ledger.ErrTaken) || errors.Is(err, ledger.ErrEnded) || errors.Is(err, ledger.ErrStarted) {
			err = nil
		}
		return false, err
	})
	if err != nil {
		c.Error(err)
	}
}

// TestContest: 64 people approve and deny one request at the same time, from two processes on one ledger, while both processes try to resume
// it. Each round has one decision; an approved run is called once, and a denied one never.
func TestContest(t *testing.T) {
	d := newFixture(t)
	processes := []*fixture{d, d.other()}
	var names []string
	var people []ledger.Caller
	for i := range 2 * voters {
		names = append(names, fmt.Sprintf("person-%d", i))
		people = append(people, d.Approver(names[i]))
	}
	ended := make(map[ledger.Status]int)
	for n := range contestRounds(t) {
		quorum := 1 + n%2
		content := ledgertest.Holding(quorum)
		content.Roles[0].Actors = names
		c := &contest{T: t, request: processes[n%2].HoldBy("local:erin", content), bundle: statestest.MustBundle(content, nil)}
		var all sync.WaitGroup
		for i, by := range people {
			all.Go(func() { c.vote(processes[i%2], by, (i/2+i)%2 == 0) })
		}
		for i := range 2 * takers {
			all.Go(func() { c.take(processes[i%2]) })
		}
		all.Wait()
		if ended[c.judge(d, quorum)]++; t.Failed() {
			return
		}
	}
	d.Inspect(func(r ledger.Reader) error {
		_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
		return err
	})
	if t.Logf("%v", ended); ended[ledger.Executed] == 0 || ended[ledger.Denied] == 0 {
		t.Errorf("every round ended alike: %v", ended)
	}
}

// judge compares a round with the ledger.
func (c *contest) judge(d *fixture, quorum int) ledger.Status {
	c.Helper()
	q, approved, denied := d.Run(c.request.RunID), 0, 0
	for _, v := range d.Votes(q.RunID) {
		if v.Outcome == policy.VoteApprove {
			approved++
		} else {
			denied++
		}
	}
	calls, told := c.calls.Load(), int(c.told.Load())
	good := q.Status == ledger.Executed && approved == quorum && denied == 0 && calls == 1 ||
		q.Status == ledger.Denied && approved < quorum && denied == 1 && calls == 0
	if !good || told != approved+denied || c.decided.Load() != 1 {
		c.Errorf("quorum %d: %s %s, %d approvals and %d denials count, %d calls; %d were told that their vote counts, %d that it decides",
			quorum, q.Status, q.Code, approved, denied, calls, told, c.decided.Load())
	}
	return q.Status
}

// TestEachCommitBreaks: each transaction of a run breaks in two ways: it is undone, at any of its operations, or it is durable and its process does
// not learn of it. The call is made only after a commit that the process learned of, and once in all. The next process, or this one if it goes on,
// ends or leaves the run, as the table says.
func TestEachCommitBreaks(t *testing.T) {
	undone := []ledgertest.Op{ledgertest.Begin, ledgertest.AddEntry, ledgertest.PutRequest, ledgertest.PutBlob, ledgertest.Commit}
	unheard := []ledgertest.Op{ledgertest.Committed}
	for _, c := range []struct {
		run    string
		commit int
		how    []ledgertest.Op
		next   standing // after recovery
		last   standing // after what can be resumed was
	}{
		{"policy-allows", 1, undone, standing{"", 0}, standing{"", 0}},
		{"policy-allows", 1, unheard, standing{ledger.Indeterminate, 0}, standing{ledger.Indeterminate, 0}},
		{"policy-allows", 2, undone, standing{ledger.Indeterminate, 1}, standing{ledger.Indeterminate, 1}},
		{"policy-allows", 2, unheard, standing{ledger.Executed, 1}, standing{ledger.Executed, 1}},
		{"policy-holds", 1, undone, standing{"", 0}, standing{"", 0}},
		{"policy-holds", 1, unheard, standing{ledger.Pending, 0}, standing{ledger.Pending, 0}},
		{"approved", 1, undone, standing{ledger.Approved, 0}, standing{ledger.Executed, 1}},
		{"approved", 1, unheard, standing{ledger.Approved, 0}, standing{ledger.Executed, 1}},
		{"approved", 2, undone, standing{ledger.Approved, 0}, standing{ledger.Executed, 1}},
		{"approved", 2, unheard, standing{ledger.Indeterminate, 0}, standing{ledger.Indeterminate, 0}},
		{"approved", 3, undone, standing{ledger.Indeterminate, 1}, standing{ledger.Indeterminate, 1}},
		{"approved", 3, unheard, standing{ledger.Executed, 1}, standing{ledger.Executed, 1}},
	} {
		for _, how := range c.how {
			name := fmt.Sprintf("%s-commit-%d-%s", c.run, c.commit, how)
			t.Run(name, func(t *testing.T) { breakCommit(t, c.run, how, c.commit, true, c.next, c.last) })
			if c.run == "approved" { // a process that resumes a run leaves it to the next attempt
				t.Run(name+"-and-the-process-goes-on", func(t *testing.T) { breakCommit(t, c.run, how, c.commit, false, c.next, c.last) })
			}
		}
	}
}

// standing is where a run stands: its status, empty if there is no such run, and how many calls were made for it.
type standing struct {
	status ledger.Status
	calls  int
}

// breakCommit breaks an operation of the run's transaction with a number, and checks where the run stands after recovery, and after it was resumed.
func breakCommit(t *testing.T, run string, how ledgertest.Op, commit int, ends bool, recovered, resumed standing) {
	t.Helper()
	boom := errors.New("the disk is gone")
	d, committed, broken := newFixture(t), 0, false
	fails := func(at ledgertest.Op, _ int) error {
		if at == how && committed == commit-1 && !broken {
			broken = true
			return boom
		}
		if at == ledgertest.Committed {
			committed++
		}
		return nil
	}
	var id string
	var s *statestest.Scenario
	var err error
	if run == "approved" {
		id, s = d.approved(nil)
		d.Store.Fail = fails
		_, err = d.resume(id, world(s))
	} else {
		found := statestest.Find(t, run)
		id, s = ledgertest.NewID(t), &found
		d.Store.Fail = fails
		_, _, err = d.play(id, s)
	}
	if !broken && (how == ledgertest.PutRequest || how == ledgertest.PutBlob) {
		t.Skip("this transaction puts no such row")
	}
	if !errors.Is(err, boom) {
		t.Fatalf("the process ends with %v, want %v", err, boom)
	}

	next, again := d, statestest.Find(t, "policy-holds")
	if ends {
		d.Store.Crash()
		next = d.other()
	}
	_, err = next.Recover(t.Context(), next.replayer(nil))
	check.NoError(t, err)
	expect := func(when string, want standing) {
		t.Helper()
		if got := (standing{next.status(id), len(s.World.Calls) + len(again.World.Calls)}); got != want {
			t.Errorf("%s the run is %+v, want %+v", when, got, want)
		}
	}
	expect("at first", recovered)
	if recovered.status == ledger.Approved {
		_, err := next.resume(id, world(&again))
		check.NoError(t, err)
	}
	expect("at last", resumed)
}

// status returns the status of a run; "" if there is no such run.
func (d *fixture) status(id string) (s ledger.Status) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		q, err := r.Run(id)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		s = q.Status
		return err
	})
	return s
}

// TestLogIsMadeOnce: ledgers that record first in one new store at the same time make one log.
func TestLogIsMadeOnce(t *testing.T) {
	const ledgers = 8
	d, begin := newFixture(t), make(chan struct{})
	var group sync.WaitGroup
	for i := range ledgers {
		other := d.other()
		group.Go(func() {
			<-begin
			other.Token(fmt.Sprintf("auditor %d", i), ledger.RoleAuditor)
		})
	}
	close(begin)
	group.Wait()
	d.Inspect(func(r ledger.Reader) error {
		report, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
		if report.Entries != ledgers+1 || report.Tokens != ledgers {
			t.Errorf("Verify() = %+v, want %d entries of one log", report, ledgers+1)
		}
		return err
	})
}
