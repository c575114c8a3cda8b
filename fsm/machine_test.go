package fsm_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/fsm"
	"pgfsm/internal/test/check"
)

func compiled(t testing.TB) *fsm.Machine[*subject] {
	t.Helper()
	m, err := fsm.Compile(realistic())
	check.NoError(t, err)
	return m
}

// Every pair of a state and a trigger is fired: exactly the rows of the table pass.
func TestFireTakesTheRowsAndNothingElse(t *testing.T) {
	m, spec, passed := compiled(t), realistic().Spec(), 0
	for _, p := range append(spec.Places, fsm.Place{State: "dreamt"}, fsm.Place{}) {
		for _, on := range append(spec.Triggers(), "dream", "") {
			to, err := m.Fire(&subject{}, p.State, on)
			if err != nil {
				if to != p.State || !errors.Is(err, fsm.ErrNoTransition) || errors.Is(err, fsm.ErrGuard) {
					t.Errorf("Fire(%s, %s) = %s, %v, want %s, ErrNoTransition", p.State, on, to, err, p.State)
				}
				for _, o := range spec.Places {
					if spec.Allows(p.State, on, o.State) {
						t.Errorf("Fire(%s, %s) = %v, want %s", p.State, on, err, o.State)
					}
				}
				continue
			}
			if passed++; !spec.Allows(p.State, on, to) {
				t.Errorf("Fire(%s, %s) = %s, want what the table says", p.State, on, to)
			}
		}
	}
	if passed != len(spec.Rows) {
		t.Errorf("%d transitions passed, want %d", passed, len(spec.Rows))
	}
}

// Every guard of every row is asked, and its refusal is the machine's refusal.
func TestFireAsksEveryGuard(t *testing.T) {
	m := compiled(t)
	for _, r := range realistic().Rows {
		s := &subject{refuse: r.Guard.Name}
		to, err := m.Fire(s, r.From, r.On)
		var refusal *fsm.TransitionError
		if to != r.From || !errors.As(err, &refusal) {
			t.Errorf("Fire(%s, %s) = %s, %v, want a TransitionError", r.From, r.On, to, err)
			continue
		}
		if !errors.Is(err, fsm.ErrGuard) || !errors.Is(err, errRefused) || errors.Is(err, fsm.ErrNoTransition) {
			t.Errorf("Fire(%s, %s) = %v, want ErrGuard and the guard's own error", r.From, r.On, err)
		}
		want := fsm.TransitionError{State: r.From, Trigger: r.On, Guard: r.Guard.Name, Reason: errRefused}
		same := cmp.Comparer(func(a, b error) bool { return a == b })
		reason := func(p cmp.Path) bool { return p.String() == "Reason" }
		if diff := cmp.Diff(want, *refusal, cmp.FilterPath(reason, same)); diff != "" {
			t.Errorf("Fire(%s, %s) refused otherwise (-want +got):\n%s", r.From, r.On, diff)
		}
	}
}

func TestTransitionErrorText(t *testing.T) {
	tests := []struct {
		name, want string
		refuse     string
		at         fsm.State
		on         fsm.Trigger
		trail      []fsm.State // that the caller knows
	}{
		{"guard-with-trail", `fsm: "discover" refused in state "screened" by guard "catalog_known": the test says no ` +
			`(trail: received, screened)`,
			"catalog_known", "screened", "discover", []fsm.State{"received", "screened"}},
		{"no-row", `fsm: "plan" refused in state "received": the table has no such transition`, "", "received", "plan", nil},
		{"unknown-state", `fsm: "plan" refused in state "x": the table has no such transition: unknown state`,
			"", "x", "plan", nil},
		{"unknown-trigger", `fsm: "x" refused in state "planned": the table has no such transition`,
			"", "planned", "x", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := compiled(t).Fire(&subject{refuse: test.refuse}, test.at, test.on)
			var refusal *fsm.TransitionError
			if !errors.As(err, &refusal) {
				t.Fatalf("Fire(%s, %s) = %v, want a TransitionError", test.at, test.on, err)
			}
			if refusal.Trail = test.trail; refusal.Error() != test.want {
				t.Errorf("Fire(%s, %s) = %v, want %s", test.at, test.on, refusal, test.want)
			}
		})
	}
}

func TestZeroMachineRefuses(t *testing.T) {
	var m fsm.Machine[*subject]
	if to, err := m.Fire(&subject{}, "received", "screen"); !errors.Is(err, fsm.ErrNoTransition) {
		t.Errorf("zero Fire = %s, %v, want ErrNoTransition", to, err)
	}
	if m.Terminal("answered") || len(m.Spec().Rows) != 0 {
		t.Errorf("zero machine: Terminal %v, Spec %v, want nothing", m.Terminal("answered"), m.Spec())
	}
}

func TestTerminal(t *testing.T) {
	m := compiled(t)
	for _, p := range append(realistic().Places, fsm.Place{State: "dreamt"}) {
		if got := m.Terminal(p.State); got != p.Terminal {
			t.Errorf("Terminal(%s) = %v, want %v", p.State, got, p.Terminal)
		}
	}
}

func TestSpecIsACopy(t *testing.T) {
	m := compiled(t)
	spoilt := m.Spec()
	spoilt.Rows[0].To, spoilt.Places[0].State = "answered", "x"
	spoilt.Claims.Exits[0].On[0], spoilt.Claims.Effects[0].Dominators[0] = "x", "x"
	if diff := cmp.Diff(realistic().Spec(), m.Spec()); diff != "" {
		t.Errorf("Spec() after changing an earlier one (-want +got):\n%s", diff)
	}
}

func TestFireIsSafeForConcurrentUse(t *testing.T) {
	m := compiled(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			way := byApproval()
			if i%2 == 0 {
				way = byBlock()
			}
			s := &subject{refuse: "planner_asks"}
			for range 200 {
				at := fsm.State("received")
				for _, mark := range way {
					if _, err := m.Fire(s, "planned", "ask"); !errors.Is(err, errRefused) {
						t.Errorf("Fire(planned, ask) = %v, want the guard's error", err)
					}
					to, err := m.Fire(s, at, mark.On)
					if err != nil || to != mark.To {
						t.Errorf("Fire(%s, %s) = %s, %v, want %s", at, mark.On, to, err, mark.To)
						return
					}
					at = to
				}
			}
		})
	}
	wait.Wait()
}
