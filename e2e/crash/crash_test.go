//go:build unix

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/postgres/pgurl"
	"pgfsm/traces/ledger/stores"
)

// The number of kills. All of them take minutes, so by default there are fewer; `make crash` asks for all.
const (
	killsVariable = "PGFSM_CRASH_KILLS"
	killsSoak     = 60
	killsShort    = 16
)

// killsPerLedger is after how many kills a new ledger begins: each verification reads all of it.
const killsPerLedger = 20

// maxDelay bounds the random moments.
const maxDelay = 400 * time.Millisecond

func number(t *testing.T, variable string, soak, short int) int {
	t.Helper()
	text, set := os.LookupEnv(variable)
	switch {
	case set:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: want a number", variable, text)
		}
		return n
	case os.Getenv("PGFSM_SOAK") != "":
		return soak
	}
	return short
}

// A kill says how a process ends.
type kill struct {
	place string // of an update; or called or answered; or empty: after a random time
	nth   int64  // update, or call
	after time.Duration
	early bool // counted from when the process began: while it opens the file, or ends what is left over; otherwise under load
}

// Places at which the test kills the process.
const (
	whenCalled   = "called"   // its call arrived, and was not answered
	whenAnswered = "answered" // its call was answered
)

func (k kill) String() string {
	switch {
	case k.early:
		return "after " + k.after.String() + " in all"
	case k.place == "":
		return "after " + k.after.String() + " under load"
	}
	return fmt.Sprintf("%s %d", k.place, k.nth)
}

// kills are as many as are wanted: in turn each update in order, before, within and after it; each call; and as many at random.
func kills(n int, r *rand.Rand) (all []kill) {
	places := []string{beforeUpdate, withinUpdate, afterUpdate, whenCalled, whenAnswered}
	for i := range n {
		k := kill{after: time.Duration(r.Int64N(int64(maxDelay))), early: i%4 == 3}
		if i%2 == 0 {
			point := i / 2
			k = kill{place: places[point%len(places)], nth: 1 + int64(point/len(places))}
		}
		all = append(all, k)
	}
	return all
}

// TestCrash kills a process under load, at each of its commits and at random moments, and starts it again. After each kill it
// holds the ledger to what the process has told, and to what has arrived at the upstream.
func TestCrash(t *testing.T) {
	const seed = 20261121
	r := rand.New(rand.NewPCG(seed, 5))
	all := kills(number(t, killsVariable, killsSoak, killsShort), r)
	var sum tally
	for i, group := range slices.Collect(slices.Chunk(all, killsPerLedger)) {
		name := "alone"
		if i%2 == 0 {
			name = "beside-another-process"
		}
		t.Run(fmt.Sprintf("%s-%d", name, i), func(t *testing.T) {
			s := newScene(t, i%2 == 0)
			for n, k := range group {
				s.round(fmt.Sprintf("kill %d, %s", i*killsPerLedger+n+1, k), k, r.Uint64())
				if t.Failed() {
					return
				}
			}
			s.over()
			sum.add(&s.tally)
		})
	}
	t.Logf("%+v", sum)
	if sum.Kills != len(all) || sum.Calls == 0 || sum.Votes == 0 || sum.Resumed == 0 || sum.Indeterminate == 0 || sum.Left == 0 {
		t.Errorf("the load was none: %+v", sum)
	}
}

// A tally says what a test has seen, so that one that saw nothing fails.
type tally struct {
	Kills, Early, Runs, Calls, Votes, Resumed, Indeterminate, Left int
}

func (a *tally) add(b *tally) {
	a.Kills, a.Early, a.Runs, a.Calls, a.Votes = a.Kills+b.Kills, a.Early+b.Early, a.Runs+b.Runs, a.Calls+b.Calls, a.Votes+b.Votes
	a.Resumed, a.Indeterminate, a.Left = a.Resumed+b.Resumed, a.Indeterminate+b.Indeterminate, a.Left+b.Left
}

// A scene is one ledger and the processes that have it open.
type scene struct {
	*testing.T
	url    string
	tokens []string
	reader ledger.Store // open as long as another process is: an open file keeps the next one from recovering the log
	other  *process     // one that is not killed
	theirs string       // its owner's id

	mu       sync.Mutex // guards what follows
	calls    map[string]int
	voted    []message // acknowledged votes
	ended    []message // acknowledged ends
	news     int       // how many of them were looked at
	oldEnds  int
	held     []message // calls of the other process, which wait for an answer
	ending   bool      // they are answered at once
	answered int64
	kill     kill

	seen       *checkpoint.Checkpoint // after the kill before; nil before the first
	inFlight   []string               // runs of dead owners whose call had left, for the next recovery
	notTheirs  []string               // runs of the other process, which nobody may touch
	tally      tally
	callsSeen  map[string]bool
	votesFinal map[string]string // by run: how it stands by the vote that decided
}

func newScene(t *testing.T, crowded bool) *scene {
	t.Helper()
	s := &scene{
		T: t, url: ledgertest.NewURL(t), calls: make(map[string]int), callsSeen: make(map[string]bool),
		votesFinal: make(map[string]string),
	}
	s.tokens = tokens(t, s.url, people[:4]) // so few that they agree now and then
	if !crowded {
		return s
	}
	s.reader = reader(t, s.url)
	t.Cleanup(func() { s.reader.Close() })
	ready := make(chan string, 1)
	s.other = start(t, order{URL: s.url, Load: steady, Tokens: s.tokens, Hands: 2, Seed: 1}, func(p *process, m message) {
		switch m.Kind {
		case isReady:
			ready <- m.Owner
		case isCall:
			s.keeps(p, m)
		default:
			s.hear(p, m)
		}
	})
	select {
	case s.theirs = <-ready:
	case <-s.other.ended:
		s.other.done()
	}
	return s
}

// reader opens a ledger to read it.
func reader(t *testing.T, url string) ledger.Store {
	t.Helper()
	store, err := stores.Open(url, stores.ToRead)
	check.NoError(t, err)
	return store
}

// tokens makes a ledger with a token for each of the names.
func tokens(t *testing.T, url string, names []string) (texts []string) {
	t.Helper()
	store := ledgertest.OpenURL(t, url)
	l, err := ledger.Open(context.Background(), store, ledger.Options{})
	check.NoError(t, err)
	for _, name := range names {
		text, _, err := l.CreateToken(context.Background(), ledger.Local("local:root"), name, ledger.RoleApprover, "")
		check.NoError(t, err)
		texts = append(texts, text)
	}
	check.NoError(t, errors.Join(l.Close(), store.Close()))
	return texts
}

// hear takes what a process tells. It is called from one goroutine for each process.
func (s *scene) hear(p *process, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Kind {
	case isFault:
		s.Errorf("a process: %s", m.Error)
	case isVoted:
		s.voted = append(s.voted, m)
	case isEnded:
		s.ended = append(s.ended, m)
	case isCall:
		s.called(m)
		s.answered++
		at := s.answered == s.kill.nth
		if at && s.kill.place == whenCalled {
			p.kill()
			return
		}
		p.answer(m)
		if at && s.kill.place == whenAnswered {
			p.kill()
		}
	}
}

// keeps takes a call of the process that is not killed, and answers it when the next one has begun.
func (s *scene) keeps(p *process, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called(m)
	if s.ending {
		p.answer(m)
		return
	}
	s.held = append(s.held, m)
}

// called is the upstream. The intent must be committed by now, which who reads the ledger beside the process can see.
func (s *scene) called(m message) {
	if s.calls[m.Run]++; s.calls[m.Run] > 1 {
		s.Errorf("run %s was called %d times", m.Run, s.calls[m.Run])
	}
	if s.reader != nil {
		if q, err := request(s.reader, m.Run); err != nil || q.Sent == "" {
			s.Errorf("run %s is called, and no intent is committed: %+v, %v", m.Run, q, err)
		}
	}
}

func request(s ledger.Store, run string) (q ledger.Request, err error) {
	err = s.View(context.Background(), func(r ledger.Reader) (err error) {
		q, err = r.Request(run)
		return err
	})
	return q, err
}

// round starts a process, has it killed, and looks at what is left.
func (s *scene) round(name string, k kill, seed uint64) {
	s.mu.Lock()
	s.kill, s.answered = k, 0
	s.mu.Unlock()
	ready := make(chan string, 1)
	o := order{URL: s.url, Load: mixed, Tokens: s.tokens, Hands: 8, Seed: seed}
	if k.place != whenCalled && k.place != whenAnswered {
		o.Place, o.Nth = k.place, k.nth
	}
	p := start(s.T, o, func(p *process, m message) {
		if m.Kind == isReady {
			ready <- m.Owner
			return
		}
		s.hear(p, m)
	})
	if k.early { // a random moment is what is wanted; nothing depends on when it comes
		defer time.AfterFunc(k.after, p.kill).Stop()
	}
	select {
	case <-ready:
		if k.place == "" {
			defer time.AfterFunc(k.after, p.kill).Stop()
		}
		s.recovered(name)
	case <-p.ended: // it was killed before
		s.tally.Early++
	}
	p.killed()
	s.tally.Kills++
	s.endLeases()
	s.look(name)
}

// endLeases ends the leases of the processes that were killed, if the store has leases. A COMMIT that one of them had sent comes before, or fails.
func (s *scene) endLeases() {
	s.Helper()
	if !pgurl.IsURL(s.url) {
		return
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url)
	if err == nil {
		_, err = conn.Exec(ctx, "UPDATE replicas SET over = true WHERE owner <> $1", s.theirs)
		err = errors.Join(err, conn.Close(ctx))
	}
	check.NoError(s, err)
}

// recovered holds the ledger to what a process has to end when it starts, and what it has to leave alone.
func (s *scene) recovered(name string) {
	s.view(func(r ledger.Reader) {
		for _, id := range s.inFlight {
			q, err := r.Request(id)
			if err != nil || q.Status != ledger.Indeterminate || q.Ended == "" {
				s.Errorf("%s: run %s was in flight, and is %s, %v", name, id, q.Status, err)
			}
			s.tally.Indeterminate++
		}
		for _, id := range s.notTheirs {
			q, err := r.Request(id)
			if err != nil || q.Owner != s.theirs || q.Ended != "" {
				s.Errorf("%s: run %s belongs to a process that lives, and is %s of %q, %v", name, id, q.Status, q.Owner, err)
			}
			s.tally.Left++
		}
	})
	s.inFlight, s.notTheirs = nil, nil
	s.release()
}

// release answers the calls of the other process.
func (s *scene) release() {
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	for _, m := range held {
		s.other.answer(m)
	}
}

// view reads the ledger as any process does.
func (s *scene) view(do func(ledger.Reader)) {
	s.Helper()
	store := reader(s.T, s.url)
	defer store.Close()
	err := store.View(context.Background(), func(r ledger.Reader) error {
		do(r)
		return nil
	})
	check.NoError(s, err)
}

// look holds the ledger to what was told and called. The process is gone, and all that it said has been received.
func (s *scene) look(name string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view(func(r ledger.Reader) {
		s.verify(name, r, nil)
		s.acknowledged(name, r)
		s.inFlight, s.notTheirs = nil, nil
		for q, err := range r.Requests(ledger.Filter{Open: true}) {
			switch {
			case err != nil:
				s.Fatalf("%s: %v", name, err)
			case q.Sent != "" && q.Owner != s.theirs:
				s.inFlight = append(s.inFlight, q.RunID)
			case q.Owner == s.theirs && slices.ContainsFunc(s.held, func(m message) bool { return m.Run == q.RunID }):
				s.notTheirs = append(s.notTheirs, q.RunID) // it cannot end, for its call is not answered
			}
		}
	})
}

// verify verifies everything, and that nothing is missing of what was there before.
func (s *scene) verify(name string, r ledger.Reader, p *traces.Replayer) {
	s.Helper()
	report, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{Checkpoint: s.seen, Replayer: p})
	if err != nil || report.Complete != (s.seen != nil) || !report.Deep.OK() {
		s.Fatalf("%s: Verify() = %+v, %v", name, report, err)
	}
	s.seen = &checkpoint.Checkpoint{Origin: report.Origin, Size: report.Size, Root: report.Root}
	s.tally.Runs = int(report.Requests)
}

// acknowledged holds the ledger to what was received since the last kill: every call has its intent, every acknowledged vote and
// end is there, and what was denied was never called.
func (s *scene) acknowledged(name string, r ledger.Reader) {
	for id := range s.calls { // in any order
		if s.callsSeen[id] {
			continue
		}
		s.callsSeen[id] = true
		s.tally.Calls++
		if q, err := r.Request(id); err != nil || q.Sent == "" {
			s.Errorf("%s: run %s was called, and no intent is committed: %+v, %v", name, id, q, err)
		}
	}
	for _, m := range s.voted[s.news:] {
		s.tally.Votes++
		cast, err := ledger.Votes(r, m.Run)
		outcome := policy.VoteDeny
		if m.Approve {
			outcome = policy.VoteApprove
		}
		if err != nil || !slices.ContainsFunc(cast, func(v policy.Vote) bool { return v.By == m.By && v.Outcome == outcome }) {
			s.Errorf("%s: %s was told that their vote %q about run %s counts; the ledger has %+v, %v", name, m.By, outcome, m.Run, cast, err)
		}
		if m.Status != string(ledger.Pending) {
			s.votesFinal[m.Run] = m.Status
		}
	}
	s.news = len(s.voted)
	for _, m := range s.ended[s.oldEnds:] {
		q, err := r.Request(m.Run)
		if err != nil || q.Ended == "" || string(q.Head) != m.Head {
			s.Errorf("%s: run %s was said to have ended with head %s; it is %+v, %v", name, m.Run, m.Head, q, err)
		}
	}
	s.oldEnds = len(s.ended)
	for id, status := range s.votesFinal { // in any order
		if status == string(ledger.Denied) && s.calls[id] > 0 {
			s.Errorf("%s: run %s was denied, which was acknowledged, and was called", name, id)
		}
	}
}

// over has the last process take up all that was approved. Then every run whose approval was acknowledged has been called once, or
// was being called when its process was killed.
func (s *scene) over() {
	if s.other != nil {
		s.mu.Lock()
		s.ending = true
		s.mu.Unlock()
		s.other.say("end")
		s.release()
		s.other.done()
	}
	s.mu.Lock()
	s.kill = kill{}
	s.mu.Unlock()
	p := start(s.T, order{URL: s.url, Load: drain, Tokens: s.tokens}, func(p *process, m message) {
		if m.Kind != isReady {
			s.hear(p, m)
		}
	})
	p.done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view(func(r ledger.Reader) {
		s.verify("at the end", r, traces.NewReplayer(statestest.MustMachine(s.T), nil))
		s.acknowledged("at the end", r)
		for id, status := range s.votesFinal { // in any order
			q, err := r.Request(id)
			calls := s.calls[id]
			good := status == string(ledger.Denied) && q.Status == ledger.Denied && calls == 0 || status == string(ledger.Approved) &&
				(q.Status == ledger.Executed && calls == 1 || q.Status == ledger.Indeterminate && calls <= 1)
			if err != nil || !good {
				s.Errorf("at the end: run %s was %s, and is %s with %d calls, %v", id, status, q.Status, calls, err)
			}
			if status == string(ledger.Approved) {
				s.tally.Resumed++
			}
		}
		for q, err := range r.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Executed}}) {
			if err != nil || s.calls[q.RunID] != 1 {
				s.Errorf("at the end: run %s is executed with %d calls, %v", q.RunID, s.calls[q.RunID], err)
			}
		}
		for q, err := range r.Requests(ledger.Filter{Open: true}) {
			if err != nil || q.Status != ledger.Pending {
				s.Errorf("at the end: run %s is left %s, %v", q.RunID, q.Status, err)
			}
		}
	})
}
