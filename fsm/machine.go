package fsm

import (
	"context"
	"fmt"

	"github.com/qmuntal/stateless"
)

// Machine is a compiled table. It is immutable and safe for concurrent use; the zero Machine
// refuses everything.
type Machine[S any] struct {
	spec     *Spec
	inner    *stateless.StateMachine
	terminal map[State]bool // has every state of the table

	// The states and triggers of the table as stateless takes them, so that Fire converts none.
	states   map[State]stateless.State
	triggers map[Trigger]stateless.Trigger
}

// firing carries one Fire through stateless: it is the context of the call, and holds the state.
type firing[S any] struct {
	context.Context
	subject S
	state   stateless.State
	guard   string // the guard that refused
	reason  error  // the guard's error
}

type firingKey struct{}

// Value finds the firing, however deep stateless wraps the context.
func (f *firing[S]) Value(key any) any {
	if key == (firingKey{}) {
		return f
	}
	return f.Context.Value(key)
}

func firingOf[S any](ctx context.Context) *firing[S] { return ctx.Value(firingKey{}).(*firing[S]) }

// newMachine configures stateless from a table without mistakes, and from nothing else.
func newMachine[S any](t Table[S]) *Machine[S] {
	m := &Machine[S]{
		spec:     t.Spec(),
		terminal: map[State]bool{},
		states:   map[State]stateless.State{},
		triggers: map[Trigger]stateless.Trigger{},
	}
	m.inner = stateless.NewStateMachineWithExternalStorage(
		func(ctx context.Context) (stateless.State, error) { return firingOf[S](ctx).state, nil },
		func(ctx context.Context, to stateless.State) error {
			firingOf[S](ctx).state = to
			return nil
		},
		stateless.FiringImmediate)
	m.inner.OnUnhandledTrigger(func(context.Context, stateless.State, stateless.Trigger, []string) error {
		return ErrNoTransition
	})

	for _, p := range t.Places {
		m.terminal[p.State], m.states[p.State] = p.Terminal, p.State
		m.inner.Configure(p.State)
	}
	for _, r := range t.Rows {
		m.triggers[r.On] = r.On
		m.inner.Configure(r.From).Permit(r.On, r.To, r.Guard.askGuard)
	}
	return m
}

// askGuard asks the guard about the subject of the firing, and keeps its error there.
func (g Guard[S]) askGuard(ctx context.Context, _ ...any) bool {
	f := firingOf[S](ctx)
	if f.reason = g.Allow(f.subject); f.reason != nil {
		f.guard = g.Name
	}
	return f.reason == nil
}

// Fire returns the state that on establishes for a subject that is in state at, or a
// [*TransitionError]. It changes nothing: the caller keeps the state. On an error the returned
// state is at.
func (m *Machine[S]) Fire(subject S, at State, on Trigger) (State, error) {
	refuse := func(guard string, reason error) (State, error) {
		return at, &TransitionError{State: at, Trigger: on, Guard: guard, Reason: reason}
	}
	from, isKnown := m.states[at]
	if !isKnown { // stateless would add it
		return refuse("", fmt.Errorf("%w: unknown state", ErrNoTransition))
	}
	trigger, isKnown := m.triggers[on]
	if !isKnown {
		return refuse("", ErrNoTransition)
	}

	// The guard leaves its reason in the firing: stateless reports only that no row was taken.
	f := &firing[S]{Context: context.Background(), subject: subject, state: from}
	err := m.inner.FireCtx(f, trigger)
	if f.reason != nil {
		return refuse(f.guard, f.reason)
	}
	if err != nil {
		return refuse("", err)
	}
	return f.state.(State), nil
}

// Terminal reports whether a known state has no way out. An unknown state is not terminal: nothing
// ends there.
func (m *Machine[S]) Terminal(at State) bool { return m.terminal[at] }

// Spec gives a copy of the table without its functions; keep it rather than asking for it again.
func (m *Machine[S]) Spec() *Spec {
	if m.spec == nil {
		return &Spec{}
	}
	return m.spec.clone()
}
