//go:build unix

package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// The number of rounds; `make crash` asks for a thousand.
const (
	roundsVariable = "PGFSM_CRASH_ROUNDS"
	roundsSoak     = 100
	roundsShort    = 25
)

const (
	// Of two processes, each has so many people who vote, and so many who try to take the run up.
	electorate = 32
	takers     = 2
	// lookEvery is how often who wants to take up a run looks whether it can be: as fast as is possible without keeping the voters
	// from their votes.
	lookEvery = time.Millisecond
)

// A round is what the processes are told.
type round struct {
	Hold    int    `json:"hold,omitzero"` // the quorum of a run that is to be held; 0: everybody votes about the run
	Run     string `json:"run,omitzero"`
	Binding string `json:"binding,omitzero"`
	First   bool   `json:"first,omitzero"` // those with odd numbers deny in the first process, and the others in the second
}

// races executes its orders, round after round.
func (w *worker) races() error {
	for text := range w.told {
		var r round
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return err
		}
		if r.Hold > 0 {
			id, err := w.fresh(r.Hold)
			if err != nil {
				return err
			}
			q, err := w.standing(id)
			if err != nil {
				return err
			}
			w.tell(message{Kind: isHeld, Run: id, Binding: string(q.Binding)})
			continue
		}
		if err := w.contest(&r); err != nil {
			return err
		}
		w.tell(message{Kind: isDone, Run: r.Run})
	}
	return nil
}

// contest has everybody vote at once, and others take up the run as soon as they can.
func (w *worker) contest(r *round) error {
	var all sync.WaitGroup
	errs := make(chan error, len(w.people)+takers)
	q := ledger.Request{RunID: r.Run, Binding: canonical.Digest(r.Binding)}
	for range takers {
		all.Go(func() { errs <- w.insists(r.Run) })
	}
	for i, by := range w.people {
		all.Go(func() { errs <- w.vote(&q, by, (i%2 == 0) == r.First) })
	}
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// insists tries to resume a run until it has ended.
func (w *worker) insists(id string) error {
	return ledger.Poll(context.Background(), lookEvery, func() (bool, error) {
		q, err := w.standing(id)
		if err != nil || q.Ended != "" {
			return true, err
		}
		if q.Status == ledger.Pending {
			return false, nil
		}
		return false, w.takes(id)
	})
}

// A contest is two processes that race, and what they tell.
type contest struct {
	*testing.T
	store     ledger.Store
	processes [2]*process
	events    chan message // held and done

	mu     sync.Mutex // guards what follows
	calls  map[string]int
	denied map[string]bool
	told   map[string]int // votes that were acknowledged
	last   map[string]int // of them, those that decided
}

// hear takes what a process tells. What it acknowledged was received before what it did afterwards.
func (c *contest) hear(p *process, m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Kind {
	case isFault:
		c.Errorf("a process: %s", m.Error)
	case isHeld, isDone:
		c.events <- m
	case isVoted:
		c.told[m.Run]++
		if m.Status != string(ledger.Pending) {
			c.last[m.Run]++
		}
		if !m.Approve {
			c.denied[m.Run] = true
			if c.calls[m.Run] > 0 {
				c.Errorf("run %s was called, and then %s was told that it is denied", m.Run, m.By)
			}
		}
	case isCall:
		c.calls[m.Run]++
		if c.denied[m.Run] || c.calls[m.Run] > 1 {
			c.Errorf("run %s: call number %d, acknowledged as denied: %v", m.Run, c.calls[m.Run], c.denied[m.Run])
		}
		p.answer(m)
	}
}

// next waits for a message of a kind.
func (c *contest) next(kind string) message {
	c.Helper()
	select {
	case m := <-c.events:
		if m.Kind != kind {
			c.Fatalf("a process says %q, want %q", m.Kind, kind)
		}
		return m
	case <-c.processes[0].ended:
	case <-c.processes[1].ended:
	}
	c.Fatal("a process ended")
	return message{}
}

func (c *contest) tell(p *process, r round) {
	c.Helper()
	text, err := json.Marshal(r)
	check.NoError(c, err)
	p.say(string(text))
}

// 64 people approve and deny one request at the same time, from two processes on one ledger, while both processes try to take it up.
// Each round has one decision; an approved run is called once, by one of them, and a denied one never.
func TestContest(t *testing.T) {
	url := ledgertest.NewURL(t)
	texts := tokens(t, url, people)
	store := reader(t, url)
	t.Cleanup(func() { store.Close() })
	c := &contest{
		T: t, store: store, events: make(chan message, 2), calls: make(map[string]int), denied: make(map[string]bool),
		told: make(map[string]int), last: make(map[string]int),
	}
	for i := range c.processes {
		c.processes[i] = start(t, order{URL: url, Load: racing, Tokens: texts[i*electorate : (i+1)*electorate]}, c.hear)
	}
	count := make(map[ledger.Status]int)
	for n := range number(t, roundsVariable, roundsSoak, roundsShort) {
		quorum := 1 + n%2
		c.tell(c.processes[n%2], round{Hold: quorum})
		held := c.next(isHeld)
		for i, p := range c.processes {
			c.tell(p, round{Run: held.Run, Binding: held.Binding, First: i == 0})
		}
		c.next(isDone)
		c.next(isDone)
		count[c.judge(n, quorum, held.Run)]++
		if t.Failed() {
			return
		}
	}
	for _, p := range c.processes {
		p.in.Close()
		p.done()
	}
	err := store.View(context.Background(), func(r ledger.Reader) error {
		_, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{})
		return err
	})
	if err != nil {
		t.Errorf("Verify() = %v", err)
	}
	t.Logf("%d executed, %d denied", count[ledger.Executed], count[ledger.Denied])
	if count[ledger.Executed] == 0 || count[ledger.Denied] == 0 {
		t.Errorf("every round ended alike: %v", count)
	}
}

// judge holds a round to the ledger.
func (c *contest) judge(n, quorum int, run string) ledger.Status {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := request(c.store, run)
	check.NoError(c, err)
	var cast []policy.Vote
	err = c.store.View(context.Background(), func(r ledger.Reader) (err error) {
		cast, err = ledger.Votes(r, run)
		return err
	})
	check.NoError(c, err)
	approved, denied := 0, 0
	for _, v := range cast {
		if v.Outcome == policy.VoteApprove {
			approved++
		} else {
			denied++
		}
	}
	good := q.Status == ledger.Executed && approved == quorum && denied == 0 && c.calls[run] == 1 ||
		q.Status == ledger.Denied && approved < quorum && denied == 1 && c.calls[run] == 0
	if !good || c.told[run] != len(cast) || c.last[run] != 1 || q.Ended == "" {
		c.Errorf("round %d, quorum %d: %s, %d approvals and %d denials count, %d calls; %d were told that their vote counts, %d that it decides",
			n, quorum, q.Status, approved, denied, c.calls[run], c.told[run], c.last[run])
	}
	return q.Status
}
