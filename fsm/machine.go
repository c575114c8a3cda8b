package fsm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/qmuntal/stateless"
)

// Machine is a compiled table. It is immutable and safe for concurrent use; the zero Machine refuses everything.
type Machine[S any] struct {
	spec  *Spec
	inner *stateless.StateMachine
	// places and triggers hold each name already as an interface value, so that firing does not allocate for it. They
	// are also the guard against stateless creating a state that it is asked about.
	places   map[State]place
	triggers map[Trigger]stateless.Trigger
	flights  *sync.Pool // of *flight[S]: nobody has one when Fire returns
}

// place is what firing needs to know of a [Place].
type place struct {
	state    stateless.State
	terminal bool
}

// flight carries one Fire through stateless. It is its own context, so that the state, the subject and the guard's
// answer travel without an allocation.
type flight[S any] struct {
	context.Context
	subject S
	at      stateless.State
	moved   bool
	guard   string
	reason  error
}

type flightKey struct{}

// Value finds the flight however deep stateless wraps the context.
func (f *flight[S]) Value(key any) any {
	if _, ok := key.(flightKey); ok {
		return f
	}
	return f.Context.Value(key)
}

func flightOf[S any](ctx context.Context) (*flight[S], error) {
	if f, ok := ctx.(*flight[S]); ok {
		return f, nil
	}
	if f, ok := ctx.Value(flightKey{}).(*flight[S]); ok {
		return f, nil
	}
	return nil, ErrNoTransition
}

// newMachine compiles a table that has been found without mistakes.
func newMachine[S any](t Table[S]) *Machine[S] {
	m := &Machine[S]{
		spec: t.Spec(), inner: configured(t), places: map[State]place{}, triggers: map[Trigger]stateless.Trigger{},
		flights: &sync.Pool{New: func() any { return &flight[S]{Context: context.Background()} }},
	}
	for _, p := range t.Places {
		m.places[p.State] = place{p.State, p.Terminal}
	}
	for _, r := range t.Rows {
		m.triggers[r.On] = r.On
	}
	return m
}

// configured configures stateless from the rows and from nothing else.
func configured[S any](t Table[S]) *stateless.StateMachine {
	inner := stateless.NewStateMachineWithExternalStorage(
		func(ctx context.Context) (stateless.State, error) {
			f, err := flightOf[S](ctx)
			if err != nil {
				return nil, err
			}
			return f.at, nil
		},
		func(ctx context.Context, to stateless.State) error {
			f, err := flightOf[S](ctx)
			if err != nil {
				return err
			}
			f.at, f.moved = to, true
			return nil
		},
		stateless.FiringImmediate)
	inner.OnUnhandledTrigger(func(context.Context, stateless.State, stateless.Trigger, []string) error {
		return ErrNoTransition
	})
	for _, p := range t.Places {
		inner.Configure(p.State)
	}
	for _, r := range t.Rows {
		inner.Configure(r.From).Permit(r.On, r.To, r.Guard.ask)
	}
	return inner
}

// ask puts the guard to the subject in the context and keeps its error there.
func (g Guard[S]) ask(ctx context.Context, _ ...any) bool {
	f, err := flightOf[S](ctx)
	if err != nil {
		return false
	}
	if f.reason = g.Allow(f.subject); f.reason != nil {
		f.guard = g.Name
		return false
	}
	return true
}

// Fire returns the state that on establishes for a subject that is in state at, or a [*TransitionError]. It changes
// nothing: the caller keeps the state. On an error the returned state is at.
func (m *Machine[S]) Fire(subject S, at State, on Trigger) (State, error) {
	from, known := m.places[at]
	if !known {
		return at, refusal(subject, at, on, "", fmt.Errorf("%w: unknown state", ErrNoTransition))
	}
	trigger, known := m.triggers[on]
	if !known {
		return at, refusal(subject, at, on, "", fmt.Errorf("%w: unknown trigger", ErrNoTransition))
	}
	f := m.flights.Get().(*flight[S])
	defer m.land(f)
	f.subject, f.at = subject, from.state
	err := m.inner.FireCtx(f, trigger)
	if f.reason != nil {
		return at, refusal(subject, at, on, f.guard, f.reason)
	}
	if err != nil {
		return at, refusal(subject, at, on, "", err)
	}
	to, ok := f.at.(State)
	if !ok || !f.moved {
		return at, refusal(subject, at, on, "", ErrNoTransition)
	}
	return to, nil
}

// land keeps a flight for others, without what it carried.
func (m *Machine[S]) land(f *flight[S]) {
	*f = flight[S]{Context: f.Context}
	m.flights.Put(f)
}

func refusal(subject any, at State, on Trigger, guard string, reason error) error {
	e := &TransitionError{State: at, Trigger: on, Guard: guard, Reason: reason, Trail: []State{at}}
	if trailed, ok := subject.(Trailed); ok {
		if trail := trailed.Trail(); len(trail) > 0 {
			e.Trail = slices.Clone(trail)
		}
	}
	return e
}

// Start is the state in which every subject begins; empty for the zero Machine.
func (m *Machine[S]) Start() State {
	if m.spec == nil {
		return ""
	}
	return m.spec.Start()
}

// Terminal reports whether a known state has no way out. An unknown state is not terminal: nothing ends there.
func (m *Machine[S]) Terminal(at State) bool { return m.places[at].terminal }

// Spec gives a copy of the table without its functions; keep it rather than asking for it again.
func (m *Machine[S]) Spec() *Spec {
	if m.spec == nil {
		return &Spec{}
	}
	return m.spec.clone()
}
