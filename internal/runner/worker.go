package runner

import (
	"context"
	"errors"
	"maps"
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
	// sweepInterval is the interval at which a worker looks for expired runs, and for runs whose
	// process is gone. Together with the lease of a replica, it bounds how long the runs of a dead
	// replica stay open.
	sweepInterval = 15 * time.Second
	// maxResumed bounds the runs that are resumed at once: each may keep servers busy.
	maxResumed = 16
	// firstPause and maxPause bound the pause before the worker retries a run that it could not
	// resume. The pause doubles, because every attempt adds an event.
	firstPause = 5 * time.Second
	maxPause   = time.Hour
	// drainTime bounds how long runs may continue after the worker is stopped.
	drainTime = 30 * time.Second
)

// A Worker resumes a ledger's decided runs. It makes approved calls, and ends runs that were
// denied, that expired, or whose process is gone.
type Worker struct {
	runner *Runner
	wakeup chan struct{}
	failed atomic.Pointer[error] // the last poll's error; nil: it succeeded
	other  atomic.Bool           // at the last sweep, another replica had a different bundle

	// Only the goroutine of Run uses these.
	nextSweep    time.Time
	nextTakeover time.Time     // until then, the worker takes over no run of another process
	sweepPause   time.Duration // doubles as long as a sweep cannot end something

	slots   chan struct{} // one value for each run being resumed
	resumed sync.WaitGroup

	mu      sync.Mutex
	busy    map[string]bool // runs that are being resumed
	retries map[string]retry
}

// A retry schedules the next attempt for a run that could not be resumed.
type retry struct {
	at    time.Time
	pause time.Duration
}

// NewWorker returns a worker for the ledger of a Runner. If the Runner has no upstreams, the worker
// makes no call and leaves approved runs to other processes.
func NewWorker(r *Runner) *Worker {
	return &Worker{
		runner:  r,
		wakeup:  make(chan struct{}, 1),
		slots:   make(chan struct{}, maxResumed),
		busy:    make(map[string]bool),
		retries: make(map[string]retry),
	}
}

// Wake makes the worker poll now.
func (w *Worker) Wake() {
	select {
	case w.wakeup <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Ready returns the error that keeps the worker from finding decided runs.
func (w *Worker) Ready() error {
	if failure := w.failed.Load(); failure != nil {
		return *failure
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
		w.pollOnce(ctx, runs)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-w.wakeup:
		}
	}
	cutOff := time.AfterFunc(drainTime, func() { cut(errStopping) })
	defer cutOff.Stop()
	w.resumed.Wait()
}

// pollOnce sweeps if a sweep is due, and starts decided runs. runs is the context of the runs that
// it starts.
func (w *Worker) pollOnce(ctx, runs context.Context) {
	err := w.sweepIfDue(ctx)
	if err == nil {
		err = w.startDecided(ctx, runs)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		w.failed.Store(nil)
		return
	}

	// Leases may have run out meanwhile: other replicas must have time to renew theirs.
	w.nextTakeover = time.Now().Add(sweepInterval)
	// Report the same failure once.
	if former := w.failed.Swap(&err); former == nil || (*former).Error() != err.Error() {
		w.runner.reportf("decided runs cannot be read: %s", err)
	}
}

// sweepIfDue ends the runs that no process would end. If one cannot be ended, the next sweep waits
// longer.
func (w *Worker) sweepIfDue(ctx context.Context) error {
	if start := time.Now(); start.Before(w.nextSweep) || start.Before(w.nextTakeover) {
		return nil
	}
	ended, err := w.runner.options.Ledger.Recover(ctx, w.runner.replayer)
	if err != nil {
		return err
	}
	serve := w.runner.Configured().Serve
	within := func(server, tool string) time.Duration {
		return time.Duration(serve.ReportTime(server, tool)) * time.Millisecond
	}
	lapsed, err := w.runner.options.Ledger.Lapse(ctx, w.runner.replayer, within)
	if err != nil {
		return err
	}
	for range lapsed {
		w.runner.metrics.Reported(states.TypeUnreported)
	}
	failed := false
	for _, e := range append(ended, lapsed...) {
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

// compareBundles reports once that another replica has a different bundle. It drops an error of the
// ledger: the next read reports that.
func (w *Worker) compareBundles(ctx context.Context) {
	bundle := w.runner.Configured().Bundle
	if bundle == nil {
		return
	}
	other, err := w.runner.options.Ledger.OtherBundle(ctx, bundle.Digest())
	if err != nil {
		other = false
	}
	if other && !w.other.Load() {
		w.runner.reportf("another replica of this ledger has another bundle; pgfsm ledger status shows which")
	}
	w.other.Store(other)
}

// startDecided starts the runs that are decided and have not ended, oldest first, until too many
// are being resumed. Without upstreams, it omits approved runs; a sweep ends them when they expire.
func (w *Worker) startDecided(ctx, runs context.Context) error {
	f := ledger.Filter{Statuses: []ledger.Status{ledger.Denied, ledger.Expired}, Open: true, Held: true}
	if w.runner.Configured().Upstreams != nil {
		f.Statuses = append(f.Statuses, ledger.Approved)
	}

	return w.runner.options.Ledger.View(ctx, func(r ledger.Reader) error {
		open := make(map[string]bool)
		for q, err := range r.Runs(f) {
			if err != nil {
				return err
			}
			if !w.startRun(runs, q) {
				return nil
			}
			open[q.RunID] = true
		}

		w.mu.Lock()
		defer w.mu.Unlock()
		maps.DeleteFunc(w.retries, func(id string, _ retry) bool { return !open[id] && !w.busy[id] })
		return nil
	})
}

// startRun resumes a run in its own goroutine, unless its call was sent, it is being resumed, or
// its retry is not due. It returns false if too many runs are being resumed.
func (w *Worker) startRun(runs context.Context, q ledger.RunRow) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, retried := w.retries[q.RunID]
	approved := q.Status == ledger.Approved && policy.IsBefore(w.runner.timestamp(), q.Expires)
	if approved && q.Delegates() { // it waits until its client asks again
		return true
	}
	if w.busy[q.RunID] || q.Sent != "" || time.Now().Before(next.at) ||
		q.Owner != "" && time.Now().Before(w.nextTakeover) {
		return true
	}

	select {
	case w.slots <- struct{}{}:
	default:
		return false
	}

	w.busy[q.RunID] = true
	w.resumed.Go(func() {
		err := w.resumeRun(runs, &q, approved)
		if err == nil && !retried {
			w.runner.measureWait(&q)
		}
		w.finishRun(q.RunID, err)
		<-w.slots
		w.Wake()
	})

	return true
}

// finishRun notes that a run is not being resumed any more. After an error, it schedules the next
// attempt.
func (w *Worker) finishRun(id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, id)
	if err != nil {
		pause := min(max(2*w.retries[id].pause, firstPause), maxPause)
		w.retries[id] = retry{time.Now().Add(pause), pause}
	}
}

// resumeRun makes the call of an approved run, and ends any other run. A call waits until
// limits.rate has room for it. While it waits, other runs use its slot, and its approval may
// expire.
func (w *Worker) resumeRun(ctx context.Context, q *ledger.RunRow, approved bool) error {
	id := q.RunID
	if !approved {
		e, err := w.runner.options.Ledger.RecoverRun(ctx, w.runner.replayer, id)
		if err == nil {
			w.runner.measureOutcome(e.Outcome)
		}
		w.reportRun(ctx, id, e.Outcome, err)
		return err
	}
	// Waiting for the rate limit must not keep other runs from being resumed.
	<-w.slots
	limited, err := w.runner.Configured().limits.Wait(ctx, q.Server, q.Tool)
	w.slots <- struct{}{}
	if err != nil {
		return err
	}
	defer limited.End()
	result, err := w.runner.resumeClaimed(ctx, id, nil)
	w.reportRun(ctx, id, result.Outcome, err)
	return err
}

// reportRun reports how a run ended, unless another process was faster.
func (w *Worker) reportRun(ctx context.Context, id string, o states.Outcome, err error) {
	switch {
	case errors.Is(err, ledger.ErrTaken), errors.Is(err, ledger.ErrEnded), errors.Is(err, ledger.ErrUndecided):
	case err != nil:
		w.runner.reportf("the run %s cannot be resumed: %s", id, err)
	default:
		w.runner.logResumed(ctx, id, o)
	}
}
