package ledger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/storetest"
)

// A dial is a clock that tests set.
type dial struct {
	mu sync.Mutex
	at time.Time
}

func (d *dial) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *dial) set(tb testing.TB, at string) {
	tb.Helper()
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		tb.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
}

// A desk is a ledger of a test, in memory, with a machine and a clock that begins when the scenarios do.
type desk struct {
	*ledger.Ledger
	t       testing.TB
	store   *storetest.Memory
	clock   *dial
	machine *states.Machine
}

func newDesk(tb testing.TB) *desk {
	tb.Helper()
	d := &dial{}
	d.set(tb, statestest.At)
	return deskAt(tb, storetest.NewMemory(), d)
}

// deskAt is a process that has the store open.
func deskAt(tb testing.TB, store *storetest.Memory, clock *dial) *desk {
	tb.Helper()
	l, err := ledger.Open(context.Background(), store, ledger.Options{Clock: clock.now})
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return &desk{Ledger: l, t: tb, store: store, clock: clock, machine: statestest.MustMachine(tb)}
}

// other is another process with the same ledger.
func (d *desk) other() *desk { return deskAt(d.t, d.store.Open(), d.clock) }

func (d *desk) replayer(decider policy.Decider) *traces.Replayer {
	return traces.NewReplayer(d.machine, func(c policy.Content) (*policy.Bundle, error) {
		b, err := policy.Compile(c)
		if err == nil && decider != nil {
			b = b.WithDecider(decider)
		}
		return b, err
	})
}

// newID draws a run's id.
func newID(tb testing.TB) string {
	tb.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		tb.Fatal(err)
	}
	return id.String()
}

// begin begins a scenario's run under an id.
func (d *desk) begin(id string, s *statestest.Scenario) (*states.Run, *ledger.Run) {
	run := states.NewRun(id, s.Request, statestest.MustBundle(s.Content, s.Decider))
	return run, d.Begin(traces.NewHeader(d.machine, run), run)
}

// play takes a scenario's run as far as it goes, as the command does.
func (d *desk) play(id string, s *statestest.Scenario) (states.Outcome, canonical.Digest, error) {
	run, rec := d.begin(id, s)
	o, err := d.machine.Advance(context.Background(), run, rec.Door(s.Entry()), rec)
	if err != nil || o.Type == states.TypePending {
		if err != nil {
			rec.Abandon()
		}
		return o, "", err
	}
	head, err := rec.Finish(context.Background(), o)
	return o, head, err
}

// row is how a run stands.
func (d *desk) row(id string) (q ledger.Request) {
	d.t.Helper()
	d.view(func(r ledger.Reader) (err error) {
		q, err = r.Request(id)
		return err
	})
	return q
}

func (d *desk) view(do func(ledger.Reader) error) {
	d.t.Helper()
	if err := d.View(context.Background(), do); err != nil {
		d.t.Fatalf("View() = %v", err)
	}
}

// types are the types of a run's events, in order.
func (d *desk) types(id string) (all []ledger.Type) {
	d.t.Helper()
	d.view(func(r ledger.Reader) error {
		for e, err := range r.EventsOf(id) {
			if err != nil {
				return err
			}
			all = append(all, e.Type)
		}
		return nil
	})
	return all
}

// trace writes the run's trace, reads it, and executes it again.
func (d *desk) trace(id string, o states.Outcome, decider policy.Decider) *traces.Trace {
	d.t.Helper()
	var doc []byte
	d.view(func(r ledger.Reader) error {
		h, steps, _, err := ledger.Load(r, id)
		if err == nil {
			doc = traces.Document(&h, steps, o)
		}
		return err
	})
	trace, err := traces.Read(doc)
	if err != nil {
		d.t.Fatalf("Read() = %v", err)
	}
	if _, err := d.replayer(decider).Replay(trace); err != nil {
		d.t.Fatalf("Replay() = %v", err)
	}
	return trace
}

// voter makes a token of a name and says who comes with it.
func (d *desk) voter(name string) ledger.Caller {
	d.t.Helper()
	text, _, err := d.CreateToken(context.Background(), ledger.Local("local:root"), name, ledger.RoleApprover, "")
	if err != nil {
		d.t.Fatalf("CreateToken() = %v", err)
	}
	c, err := d.Authenticate(context.Background(), text)
	if err != nil {
		d.t.Fatalf("Authenticate() = %v", err)
	}
	return c
}

// vote casts a vote about what the run waits for.
func (d *desk) vote(id string, by ledger.Caller, approve bool) {
	d.t.Helper()
	v := ledger.Ballot{Run: id, Binding: d.row(id).Binding, By: by, Approve: approve, Reason: "as agreed"}
	if _, err := d.Vote(context.Background(), v); err != nil {
		d.t.Fatalf("Vote() = %v", err)
	}
}
