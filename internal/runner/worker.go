package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

const (
	// pollInterval is the interval at which a worker reads runs that other processes have decided.
	pollInterval = time.Second
	// sweepInterval is the interval at which a worker looks for expired runs, and for runs whose process is gone. Together with the lease
	// of a replica, it bounds how long the runs of a dead replica stay open.
	sweepInterval = 15 * time.Second
	// maxDecided bounds the decided runs of one read: many more than are resumed at once. The next read continues after them, so runs that
	// cannot be resumed do not block the others.
	maxDecided = 256
	// maxResumed bounds the runs that are resumed at once: each may keep servers busy.
	maxResumed = 16
	// firstPause and maxPause bound the pause before the worker retries a run that it could not resume. The pause doubles, because every
	// attempt adds an event.
	firstPause = 5 * time.Second
	maxPause   = time.Hour
	// drainTime bounds how long runs may continue after the worker is stopped.
	drainTime = 30 * time.Second
)

// A Worker resumes a ledger's decided runs. It makes approved calls, and ends runs that were denied, that expired, or whose process
// is gone.
type Worker struct {
	runner *Runner
	wakeup chan struct{}
	failed atomic.Pointer[error] // the last poll's error; nil: it succeeded
	other  atomic.Bool           // at the last sweep, another replica had a different bundle

	// Only the goroutine of Run uses these.
	nextSweep    time.Time
	nextTakeover time.Time       // until then, the worker takes over no run of another process
	sweepPause   time.Duration   // doubles as long as a sweep cannot end something
	after        string          // the next read begins after this run; empty: with the oldest
	read         map[string]bool // ids of the runs read since the oldest
	retries      map[string]retry

	slots   chan struct{} // one value for each run being resumed
	resumed sync.WaitGroup

	mu       sync.Mutex
	busy     map[string]bool  // runs that are being resumed
	finished map[string]error // runs that were resumed since the last poll
}

// A retry schedules the next attempt for a run that could not be resumed.
type retry struct {
	at    time.Time
	pause time.Duration
}

// NewWorker returns a worker for the ledger of a Runner. If the Runner has no upstreams, the worker makes no call and leaves approved runs
// to other processes.
func NewWorker(r *Runner) *Worker {
	return &Worker{
		runner: r, wakeup: make(chan struct{}, 1), read: make(map[string]bool), retries: make(map[string]retry),
		slots: make(chan struct{}, maxResumed), busy: make(map[string]bool), finished: make(map[string]error),
	}
}

// Wake makes the worker poll now.
func (w *Worker) Wake(string) {
	select {
	case w.wakeup <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Ready returns the error that keeps the worker from finding decided runs.
func (w *Worker) Ready(context.Context) error {
	if why := w.failed.Load(); why != nil {
		return *why
	}
	return nil
}

// OtherBundle reports whether another replica had a different bundle at the last sweep.
func (w *Worker) OtherBundle() bool { return w.other.Load() }

// errStopping is the cause for runs that are cut off because they did not end in time.
var errStopping = errors.New("the service is ending")

// Run works until ctx is done. Then it waits for the runs being resumed, for half a minute at most.
func (w *Worker) Run(ctx context.Context) {
	runs, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.poll(ctx, runs)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-w.wakeup:
		}
	}
	late := time.AfterFunc(drainTime, func() { cut(errStopping) })
	defer late.Stop()
	w.resumed.Wait()
}

// poll sweeps if a sweep is due, and starts decided runs. runs is the context of the runs that it starts.
func (w *Worker) poll(ctx, runs context.Context) {
	err := w.sweep(ctx)
	var todo []ledger.Request
	if err == nil {
		todo, err = w.decided(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		// Leases may have run out meanwhile: other replicas must have time to renew theirs.
		w.nextTakeover = time.Now().Add(sweepInterval)
		if before := w.failed.Swap(&err); before == nil || (*before).Error() != err.Error() { // report the same failure once
			w.runner.report("decided runs cannot be read: %s", err)
		}
		return
	}
	w.failed.Store(nil)
	w.noteRetries()
	for i := range todo {
		if !w.start(runs, &todo[i]) {
			return // no free slot: the next read begins with this run
		}
		w.after = todo[i].RunID
		w.read[w.after] = true
	}
	if len(todo) < maxDecided {
		w.restart()
	}
}

// restart makes the next read begin with the oldest run. All open runs have been read, so retries of other runs are obsolete.
func (w *Worker) restart() {
	for id := range w.retries { // in any order: each is independent
		if !w.read[id] {
			delete(w.retries, id)
		}
	}
	w.after = ""
	clear(w.read)
}

// sweep ends the runs that no process would end. If one cannot be ended, the next sweep waits longer.
func (w *Worker) sweep(ctx context.Context) error {
	if now := time.Now(); now.Before(w.nextSweep) || now.Before(w.nextTakeover) {
		return nil
	}
	ended, err := w.runner.options.Ledger.Recover(ctx, w.runner.replayer)
	if err != nil {
		return err
	}
	failed := false
	for _, e := range ended {
		failed = failed || e.Err != nil
		w.reportRun(ctx, e.RunID, e.Outcome, e.Err)
	}
	w.compareBundles(ctx)
	if w.sweepPause = min(2*w.sweepPause, maxPause); !failed || w.sweepPause == 0 {
		w.sweepPause = sweepInterval
	}
	w.nextSweep = time.Now().Add(w.sweepPause)
	return nil
}

// compareBundles reports once that another replica has a different bundle. It drops an error of the ledger: the next read reports that.
func (w *Worker) compareBundles(ctx context.Context) {
	own := w.runner.Configured().Bundle
	if own == nil {
		return
	}
	other, err := w.runner.options.Ledger.OtherBundle(ctx, own.Digest())
	if err == nil && other && !w.other.Load() {
		w.runner.report("another replica of this ledger has another bundle; pgfsm ledger status shows which")
	}
	w.other.Store(err == nil && other)
}

// decided reads the next runs that are decided and have not ended. Without upstreams, it omits approved runs; a sweep ends them when they
// expire.
func (w *Worker) decided(ctx context.Context) (todo []ledger.Request, err error) {
	f := ledger.Filter{
		Statuses: []ledger.Status{ledger.Denied, ledger.Expired}, Open: true, Held: true, After: w.after, Limit: maxDecided,
	}
	if w.runner.Configured().Upstreams != nil {
		f.Statuses = append(f.Statuses, ledger.Approved)
	}
	err = w.runner.options.Ledger.View(ctx, func(r ledger.Reader) error {
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

// noteRetries schedules the next attempts for the runs that could not be resumed since the last poll.
func (w *Worker) noteRetries() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, err := range w.finished { // in any order: each is independent
		if err != nil {
			pause := min(max(2*w.retries[id].pause, firstPause), maxPause)
			w.retries[id] = retry{time.Now().Add(pause), pause}
		}
	}
	clear(w.finished)
}

// start resumes a run in its own goroutine, unless its call was sent, it is being resumed, or its retry is not due. It returns false if too
// many runs are being resumed.
func (w *Worker) start(runs context.Context, q *ledger.Request) bool {
	id := q.RunID
	w.mu.Lock()
	busy := w.busy[id]
	w.mu.Unlock()
	if busy || q.Sent != "" || time.Now().Before(w.retries[id].at) || q.Owner != "" && time.Now().Before(w.nextTakeover) {
		return true
	}
	first := w.retries[id].at.IsZero()
	approved := q.Status == ledger.Approved && policy.IsBefore(w.runner.timestamp(), q.Expires)
	select {
	case w.slots <- struct{}{}:
	default:
		return false
	}
	w.mu.Lock()
	w.busy[id] = true
	w.mu.Unlock()
	decided := *q
	w.resumed.Go(func() {
		err := w.resume(runs, &decided, approved)
		if err == nil && first {
			w.runner.measureWait(&decided)
		}
		w.mu.Lock()
		delete(w.busy, id)
		w.finished[id] = err
		w.mu.Unlock()
		<-w.slots
		w.Wake(id)
	})
	return true
}

// resume makes the call of an approved run, and ends any other run. A call waits until limits.rate has room for it. While it waits, other
// runs use its slot, and its approval may expire.
func (w *Worker) resume(ctx context.Context, q *ledger.Request, approved bool) error {
	id := q.RunID
	if !approved {
		e, err := w.runner.options.Ledger.RecoverRun(ctx, w.runner.replayer, id)
		if err == nil {
			w.runner.measureOutcome(e.Outcome)
		}
		w.reportRun(ctx, id, e.Outcome, err)
		return err
	}
	<-w.slots
	limited, err := w.runner.Configured().limits.Wait(ctx, q.Server, q.Tool)
	w.slots <- struct{}{}
	if err != nil {
		return err
	}
	defer limited.End()
	got, err := w.runner.resume(ctx, id, nil)
	w.reportRun(ctx, id, got.Outcome, err)
	return err
}

// reportRun reports how a run ended, unless another process was faster.
func (w *Worker) reportRun(ctx context.Context, id string, o states.Outcome, err error) {
	switch {
	case errors.Is(err, ledger.ErrTaken), errors.Is(err, ledger.ErrEnded), errors.Is(err, ledger.ErrUndecided):
	case err != nil:
		w.runner.report("the run %s cannot be resumed: %s", id, err)
	default:
		w.runner.logResumed(ctx, id, o)
	}
}
