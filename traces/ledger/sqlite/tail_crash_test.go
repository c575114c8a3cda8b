package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// Where a process of the tests finds which ledger it is to open, and how.
const (
	crashPath = "PGFSM_TAILTEST_PATH"
	crashMode = "PGFSM_TAILTEST_MODE"
)

// What such a process does.
const (
	withTail    = "with-a-tail" // it commits until it is killed
	withoutTail = "without"     // so does this one
	onlyOpens   = "only-opens"  // it brings in what was left, and ends
)

const (
	crashRounds = 30
	// crashRoundsEach is after how many a new ledger begins: each time all of it is read.
	crashRoundsEach = 6
	// crashHands is how many calls a process makes at the same time.
	crashHands = 3
	// crashAcks bounds after how many commits a process is killed, and crashDelay after how long one that only opens the ledger.
	crashAcks  = 40
	crashDelay = 25 * time.Millisecond
)

// An ack is what a process was told of one of its commits, and tells the test. It is one line, which a pipe takes as a whole.
type ack struct {
	kind string // of these
	id   string // of the run, or the token
	seq  int64  // of the commit's last event
}

const (
	ackLeft  = "left"
	ackEnded = "ended"
	ackToken = "token"
)

func (a ack) String() string { return fmt.Sprintf("ack %s %s %d", a.kind, a.id, a.seq) }

func parseAck(line string) (a ack, ok bool) {
	n, err := fmt.Sscanf(line, "ack %s %s %d", &a.kind, &a.id, &a.seq)
	return a, n == 3 && err == nil
}

// TestTailWorker is no test, but what the processes of TestTailCrash do.
func TestTailWorker(t *testing.T) {
	path, wanted := os.LookupEnv(crashPath)
	if !wanted {
		t.Skip("this is what the processes of TestTailCrash run")
	}
	mode := os.Getenv(crashMode)
	s, err := sqlite.Open(path, sqlite.Options{Tail: mode == withTail})
	if err != nil {
		t.Fatal(err)
	}
	if mode == onlyOpens {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	var all sync.WaitGroup
	for range crashHands {
		all.Go(func() {
			for n := 0; ; n++ {
				if err := commitsOfACrash(t, s, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// commitsOfACrash makes a call, and now and then something else, until the process is killed.
func commitsOfACrash(t *testing.T, s *sqlite.Store, n int) error {
	c := newCall(newID(t))
	for _, part := range []struct {
		kind  string
		write func(*call, ledger.Tx) error
	}{{ackLeft, (*call).leaves}, {ackEnded, (*call).ends}} {
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			chained(&c, tx)
			return part.write(&c, tx)
		})
		if err != nil {
			return err
		}
		fmt.Println(ack{part.kind, c.request.RunID, c.request.Seq})
	}
	switch {
	case n%5 == 2: // in the file itself
		id, seq := newID(t), int64(0)
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			e := newCall(id)
			chained(&e, tx)
			seq = e.events[0].Seq
			return errors.Join(tx.PutToken(ledger.Token{ID: id, Seq: seq}), tx.AddEvents(e.events[:1]))
		})
		if err != nil {
			return err
		}
		fmt.Println(ack{ackToken, id, seq})
	case n%7 == 3:
		return s.View(t.Context(), func(r ledger.Reader) error {
			_, err := r.Request(c.request.RunID)
			return err
		})
	}
	return nil
}

// chained lets a call's next events follow what the ledger ends with.
func chained(c *call, tx ledger.Tx) {
	end, _ := tx.End() // the first event follows nothing
	events := c.events[:firstEvents]
	if c.decision.Seq > 0 {
		events = c.events[firstEvents:]
	}
	c.from(end.Seq)
	prev := end.Hash
	for i := range events {
		events[i].Prev = prev
		events[i].Hash = canonical.Sum("event", fmt.Appendf(nil, "%s %d %s", prev, events[i].Seq, events[i].RunID))
		prev = events[i].Hash
	}
}

// A crashed is a process that commits and is killed.
type crashed struct {
	cmd  *exec.Cmd
	acks chan ack // closed when it has ended
	said strings.Builder
}

func startCrash(t *testing.T, path, mode string) *crashed {
	t.Helper()
	return startWorker(t, "TestTailWorker", path, mode, nil)
}

// startWorker starts a process that does what a test does only there. It reads from in, if that is not nil.
func startWorker(t *testing.T, worker, path, mode string, in *os.File) *crashed {
	t.Helper()
	p := &crashed{cmd: exec.Command(os.Args[0], "-test.run=^"+worker+"$"), acks: make(chan ack, 1<<12)}
	p.cmd.Env = append(os.Environ(), crashPath+"="+path, crashMode+"="+mode)
	p.cmd.Stderr = os.Stderr
	if in != nil {
		p.cmd.Stdin = in
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.acks)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a, ok := parseAck(lines.Text()); ok {
				p.acks <- a
				continue
			}
			p.said.WriteString(lines.Text() + "\n")
		}
	}()
	return p
}

// kill ends a process after some of its commits, and returns all that were acknowledged.
func (p *crashed) kill(t *testing.T, after int) (all []ack) {
	t.Helper()
	for len(all) < after {
		a, ok := <-p.acks
		if !ok {
			t.Errorf("a process has ended by itself:\n%s", p.said.String())
			break
		}
		all = append(all, a)
	}
	return append(all, p.end(t)...)
}

func (p *crashed) end(t *testing.T) (all []ack) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	for a := range p.acks {
		all = append(all, a)
	}
	// It was killed, or had ended: what it said tells more than how it ended.
	if _ = p.cmd.Wait(); p.said.Len() > 0 && !strings.Contains(p.said.String(), "PASS") {
		t.Errorf("a process says:\n%s", p.said.String())
	}
	return all
}

// TestTailCrash kills processes that commit with a tail, alone and beside others, and then one that brings in what they left. What was
// acknowledged is found by whoever opens the ledger next, as it was, and what was not, is there as a whole or not at all.
func TestTailCrash(t *testing.T) {
	r := rand.New(rand.NewPCG(20261122, 9))
	others := []string{"", withoutTail, "", withTail}
	readers := []struct {
		name string
		open func(testing.TB, string) *sqlite.Store
	}{{"plain", openPlain}, {"with-a-tail", openTail}, {"read-only", openReader}}
	path, said, extra := "", []ack(nil), 0
	rounds := crashRounds
	if os.Getenv("PGFSM_SOAK") == "" {
		rounds /= 3
	}
	for round := range rounds {
		if round%crashRoundsEach == 0 {
			path, said, extra = filepath.Join(t.TempDir(), "ledger.db"), nil, 0
		}
		other, reader := others[round%len(others)], readers[round%len(readers)]
		name := fmt.Sprintf("%d-%s-then-%s", round, other, reader.name)
		processes := []*crashed{startCrash(t, path, withTail)}
		if other != "" {
			processes = append(processes, startCrash(t, path, other))
		}
		for _, p := range processes {
			said = append(said, p.kill(t, 1+r.IntN(crashAcks))...)
			extra += crashHands // were perhaps committed, and nobody was told
		}
		for range round % 3 {
			p := startCrash(t, path, onlyOpens)
			time.Sleep(time.Duration(r.Int64N(int64(crashDelay)))) // it is killed at any moment, or has ended
			p.end(t)
		}
		var ends []ledger.Event
		for _, next := range []func(testing.TB, string) *sqlite.Store{reader.open, openReader} {
			s := next(t, path)
			found := dumped(t, s)
			stands(t, name, s, &found, said, extra)
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			ends = append(ends, found.Events[len(found.Events)-1])
		}
		if ends[0].Hash != ends[1].Hash {
			t.Errorf("%s: one finds event %d at the end, and the next one event %d", name, ends[0].Seq, ends[1].Seq)
		}
		if t.Failed() {
			return
		}
	}
}

func openReader(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stands holds a ledger to what was acknowledged. Not more than extra commits are there otherwise.
func stands(t *testing.T, name string, s *sqlite.Store, d *dump, said []ack, extra int) {
	t.Helper()
	bad := func(format string, args ...any) { t.Helper(); t.Errorf(name+": "+format, args...) }
	events := make(map[string][]ledger.Event)
	prev := canonical.Digest("")
	for i, e := range d.Events {
		if e.Seq != int64(i+1) || e.Prev != prev {
			bad("event %d stands at %d, chained to %q, want %q", e.Seq, i+1, e.Prev, prev)
			return
		}
		prev = e.Hash
		events[e.RunID] = append(events[e.RunID], e)
	}
	steps, decisions, requests := make(map[string]int), make(map[string]int), make(map[string]ledger.Request)
	for _, st := range d.Steps {
		if st.Seq != steps[st.RunID] {
			bad("run %s: step %d stands at %d", st.RunID, st.Seq, steps[st.RunID])
		}
		steps[st.RunID]++
	}
	for _, v := range d.Decisions {
		decisions[v.RunID]++
	}
	commits := 0
	for _, q := range d.Requests {
		requests[q.RunID] = q
		n, wantEvents, wantSteps := 1, firstEvents, firstSteps
		if q.Ended != "" {
			n, wantEvents, wantSteps = 2, 6, 12
		}
		commits += n
		own := events[q.RunID]
		if len(own) != wantEvents || own[len(own)-1].Seq != q.Seq || steps[q.RunID] != wantSteps || decisions[q.RunID] != 1 {
			bad("run %s is not whole: %d events, %d steps, %d decisions, ended %q", q.RunID, len(own), steps[q.RunID], decisions[q.RunID], q.Ended)
		}
		delete(events, q.RunID)
	}
	tokens := make(map[string]int64)
	err := s.View(context.Background(), func(r ledger.Reader) error {
		for k, err := range r.Tokens() {
			if err != nil {
				return err
			}
			tokens[k.ID] = k.Seq
			if own := events[k.ID]; len(own) != 1 || own[0].Seq != k.Seq {
				bad("token %s has events %v", k.ID, own)
			}
			delete(events, k.ID)
			commits++
		}
		return nil
	})
	if err != nil {
		bad("%v", err)
	}
	if len(events) != 0 {
		bad("events of nothing: %v", slices.Sorted(maps.Keys(events)))
	}
	for _, a := range said {
		q, there := requests[a.id]
		switch {
		case a.kind == ackToken && tokens[a.id] != a.seq, a.kind != ackToken && !there, a.kind == ackEnded && (q.Ended == "" || q.Seq != a.seq),
			a.kind == ackLeft && q.Ended == "" && q.Seq != a.seq:
			bad("%s was acknowledged, and is not there: %+v", a, q)
		}
	}
	if commits < len(said) || commits > len(said)+extra {
		bad("%s commits are there, and %d were acknowledged", strconv.Itoa(commits), len(said))
	}
}
