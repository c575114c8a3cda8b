package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"pgfsm/internal/current"
	"pgfsm/internal/deadline"
	"pgfsm/internal/telemetry"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// Options are the parts that a [Runner] works with.
type Options struct {
	Config // the first configuration; a reload replaces it

	// Ledger records runs and holds calls for approval. Unrecorded, which requires a nil Ledger,
	// records runs nowhere; then the runner never makes a call that a policy holds.
	Ledger     *ledger.Ledger
	Unrecorded bool

	// Takes one line for the operator, which may quote clients and servers; nil drops it.
	Report func(line string)
	Log    *slog.Logger // logs the calls of agents; nil drops them

	Tracer *telemetry.Tracer // nil exports no spans
}

// A Runner takes requests through the machine. It is safe for concurrent use.
type Runner struct {
	options  Options // its Config is empty
	machine  *states.Machine
	replayer *traces.Replayer
	log      *slog.Logger
	metrics  *telemetry.Metrics
	active   *current.Value[*ConfiguredRunner]

	servers serverStates // the last listing of each server
	holds   holds

	connected chan struct{} // wakes what follows the connections of people

	limited rate.Sometimes // limits the log lines about limited agents, who can cause any number

	calls       sync.WaitGroup               // agents' calls under way
	accounts    sync.WaitGroup               // changes of connections under way
	writeFailed atomic.Pointer[writeFailure] // nil: the last record was written
}

// New returns a Runner. It connects to nothing.
func New(o Options) (*Runner, error) {
	if o.Ledger == nil && !o.Unrecorded {
		return nil, errors.New("there is no ledger, and the runs are not to be unrecorded")
	}
	machine, err := states.NewMachine()
	if err != nil {
		return nil, err
	}

	if o.Report == nil {
		o.Report = func(string) {}
	}

	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	r := &Runner{
		machine:  machine,
		replayer: traces.NewReplayer(machine, nil),
		log:      o.Log,
		metrics:  telemetry.New(),
		limited:  rate.Sometimes{Interval: time.Second},

		connected: make(chan struct{}, 1),
	}

	first := o.Config
	o.Config = Config{}
	r.options = o
	r.active = current.New(r.withConfig(first))

	return r, nil
}

// Machine returns the machine that takes all runs.
func (r *Runner) Machine() *states.Machine { return r.machine }

// timestamp returns the current time in the form of all recorded times. With a ledger, it is the
// time of the ledger's clock.
func (r *Runner) timestamp() string {
	clock := time.Now
	if r.options.Ledger != nil {
		clock = r.options.Ledger.Now
	}
	return clock().UTC().Format(policy.TimeForm)
}

// runTimeout bounds the time of a run, without its call and without waiting for approval.
func (r *ConfiguredRunner) runTimeout() time.Duration {
	return time.Duration(r.Bundle.Limits().RunTimeout) * time.Millisecond
}

func (r *Runner) reportf(format string, args ...any) {
	r.options.Report(fmt.Sprintf(format, args...))
}

// A Request holds a person's question or plan.
type Request struct {
	Actor string
	Token string // the id of the ledger's token by which the actor is known; empty for others
	// The person whose token it is, see [policy.Principal]; empty for others.
	Principal string
	Kind      string // states.KindAsk: Text is a question; states.KindCall: Text is a plan
	Text      []byte
	Task      string // the task in which grants count calls; empty: none
}

// A Watch is called for each transition of a run, as soon as it is recorded.
type Watch func(*states.Run, states.Step)

// A Result holds a run and its outcome: how the run ended, or that it is held. If no run began,
// both are zero.
type Result = ledger.Resumed

// Run takes a request through the machine. If a run began, an error means that its record could not
// be written: the run stopped, and the outcome says whether its call was made.
func (r *Runner) Run(ctx context.Context, q Request, watch Watch) (Result, error) {
	active := r.active.Acquire()
	defer active.Release()
	configured := active.Value
	ctx, cancel := deadline.Within(ctx, configured.runTimeout())
	defer cancel()
	request := states.Request{Actor: q.Actor, At: r.timestamp(), Kind: q.Kind, Task: q.Task, Text: q.Text}

	id, err := uuid.NewV7()
	if err != nil {
		return Result{}, err
	}

	run := states.NewRun(id.String(), request, configured.Bundle)
	handler, end := configured.runPorts(run, q.Principal != "")
	defer end()

	requester := callerOf(gateway.Identity{Name: q.Actor, Token: q.Token, Principal: q.Principal})
	return r.advanceRecorded(ctx, run, r.beginCallRecord(run, requester, false), handler, watch)
}
