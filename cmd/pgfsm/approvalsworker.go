package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

const (
	// workInterval is how often a worker looks for runs that were decided in other processes.
	workInterval = time.Second
	// sweepInterval is how often it looks for what processes that are gone left behind, and for what expired.
	sweepInterval = 15 * time.Second
	// maxDecided is how many decided runs a look reads: many times those that can be gone on with. The next look reads on
	// behind them, so that runs that nothing can be done about keep no other from its turn.
	maxDecided = 256
	// maxResumed is how many runs are gone on with at once: each may have servers at work.
	maxResumed = 16
	// firstPause and maxPause bound how long a run is left alone that could not be gone on with. It grows: every attempt
	// adds an event.
	firstPause = 5 * time.Second
	maxPause   = time.Hour
	// drainTime is how long runs that are under way may go on when the service is stopped.
	drainTime = 30 * time.Second
)

// A worker goes on with runs that are decided, as long as its service runs.
type worker struct {
	l        *openedLedger
	app      *app // nil: nothing is called
	replayer *traces.Replayer
	say      func(string)
	woken    chan struct{}
	broken   atomic.Pointer[string] // why the last look failed

	// Only the goroutine of run uses these.
	sweep  time.Time       // when the next sweep is due
	pause  time.Duration   // of sweeps that could not end something
	after  string          // the run behind which the next look begins; empty: with the oldest
	open   map[string]bool // the runs that were read since it began anew
	later  map[string]retry
	slots  chan struct{}
	all    sync.WaitGroup
	mu     sync.Mutex // guards atWork, ended
	atWork map[string]bool
	ended  map[string]error // what came of those that were at work
}

// A retry is when to look at a run again that could not be gone on with.
type retry struct {
	at    time.Time
	pause time.Duration
}

// newWorker makes a worker that goes on with runs by an app; without one it calls nothing.
func newWorker(l *openedLedger, a *app, say func(string)) (*worker, error) {
	k := &worker{
		l: l, app: a, say: say, woken: make(chan struct{}, 1), later: make(map[string]retry), open: make(map[string]bool), slots: make(chan struct{}, maxResumed),
		atWork: make(map[string]bool), ended: make(map[string]error),
	}
	machine, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	k.replayer = traces.NewReplayer(machine, nil)
	return k, nil
}

// wake lets the worker look at once.
func (k *worker) wake(string) {
	select {
	case k.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// ready says why the worker does not do its work.
func (k *worker) ready(context.Context) error {
	if why := k.broken.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// run works until ctx is done, and then lets what is under way come to its end.
func (k *worker) run(ctx context.Context) {
	runs, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	tick := time.NewTicker(workInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		k.look(ctx, runs)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-k.woken:
		}
	}
	late := time.AfterFunc(drainTime, func() { cut(errStopping) })
	defer late.Stop()
	k.all.Wait()
}

// look goes through what there is to do, once.
func (k *worker) look(ctx, runs context.Context) {
	err := k.starting(ctx)
	if err == nil {
		err = k.sweepUp(ctx)
	}
	var todo []ledger.Request
	if err == nil {
		todo, err = k.decided(ctx)
	}
	switch before := k.broken.Load(); {
	case ctx.Err() != nil:
		return
	case err == nil:
		k.broken.Store(nil)
	default:
		why := err.Error()
		if before == nil || *before != why { // once is enough
			k.say("runs that are decided cannot be looked for: " + why)
		}
		k.broken.Store(&why)
		return
	}
	k.settle()
	for i := range todo {
		if !k.take(runs, &todo[i]) {
			return // the next look begins with it
		}
		k.after = todo[i].RunID
		k.open[k.after] = true
	}
	if len(todo) < maxDecided {
		k.anew()
	}
}

// anew lets the next look begin with the oldest run. All that is open was read, so what is in later and was not is nobody's
// business any more.
func (k *worker) anew() {
	for id := range k.later { // in any order: each stands alone
		if !k.open[id] {
			delete(k.later, id)
		}
	}
	k.after = ""
	clear(k.open)
}

// starting makes the servers reachable, once, before many runs want them.
func (k *worker) starting(ctx context.Context) error {
	if k.app == nil {
		return nil
	}
	return k.app.start(ctx)
}

// sweepUp ends what nobody would end. Where something could not be ended it waits longer each time.
func (k *worker) sweepUp(ctx context.Context) error {
	if time.Now().Before(k.sweep) {
		return nil
	}
	ended, err := k.l.Recover(ctx, k.replayer)
	if err != nil {
		return err
	}
	failed := false
	for _, r := range ended {
		failed = failed || r.Err != nil
		k.tell(r.RunID, r.Outcome, r.Err)
	}
	if k.pause = min(2*k.pause, maxPause); !failed || k.pause == 0 {
		k.pause = sweepInterval
	}
	k.sweep = time.Now().Add(k.pause)
	return nil
}

// decided are the next runs that people have decided about and that have not ended. Where nothing is called, what they
// agreed to is left to others; if it expires, a sweep ends it.
func (k *worker) decided(ctx context.Context) (todo []ledger.Request, err error) {
	f := ledger.Filter{
		Statuses: []ledger.Status{ledger.Denied, ledger.Expired}, Open: true, Held: true, After: k.after, Limit: maxDecided,
	}
	if k.app != nil {
		f.Statuses = append(f.Statuses, ledger.Approved)
	}
	err = k.l.View(ctx, func(r ledger.Reader) error {
		todo = nil
		for q, err := range r.Requests(f) {
			if err != nil {
				return err
			}
			todo = append(todo, q)
		}
		return nil
	})
	return todo, err
}

// settle notes which of the runs that were gone on with have to be left alone for a while.
func (k *worker) settle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, err := range k.ended { // in any order: each stands alone
		if err != nil {
			pause := min(max(2*k.later[id].pause, firstPause), maxPause)
			k.later[id] = retry{time.Now().Add(pause), pause}
		}
	}
	clear(k.ended)
}

// take goes on with a run beside the others, unless its call has left, it is at work already, or was tried in vain lately.
// It reports whether there was room for it.
func (k *worker) take(runs context.Context, q *ledger.Request) bool {
	id := q.RunID
	k.mu.Lock()
	busy := k.atWork[id]
	k.mu.Unlock()
	if busy || q.Sent != "" || time.Now().Before(k.later[id].at) {
		return true
	}
	calls := q.Status == ledger.Approved && policy.Before(now(), q.Expires)
	select {
	case k.slots <- struct{}{}:
	default:
		return false
	}
	k.mu.Lock()
	k.atWork[id] = true
	k.mu.Unlock()
	k.all.Go(func() {
		err := k.goOn(runs, id, calls)
		k.mu.Lock()
		delete(k.atWork, id)
		k.ended[id] = err
		k.mu.Unlock()
		<-k.slots
		k.wake(id)
	})
	return true
}

// goOn goes on with one run.
func (k *worker) goOn(ctx context.Context, id string, calls bool) error {
	if !calls {
		r, err := k.l.RecoverRun(ctx, k.replayer, id)
		k.tell(id, r.Outcome, err)
		return err
	}
	err := k.l.Claim(ctx, id)
	var got ledger.Resumed
	if err == nil {
		got, err = k.l.Resume(ctx, k.replayer, id, k.app.resumption(newInk(k.app.w), true))
	}
	k.tell(id, got.Outcome, err)
	return err
}

// tell says what became of a run. Where another process was faster there is nothing to say.
func (k *worker) tell(id string, o states.Outcome, err error) {
	switch {
	case errors.Is(err, ledger.ErrTaken), errors.Is(err, ledger.ErrEnded), errors.Is(err, ledger.ErrUndecided):
	case err != nil:
		k.say(fmt.Sprintf("the run %s cannot be gone on with: %s", id, err))
	default:
		k.say(strings.TrimSpace(fmt.Sprintf("the run %s ended: %s %s", id, o.State, o.Code)))
	}
}

// shared lets many write lines to one place.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}
