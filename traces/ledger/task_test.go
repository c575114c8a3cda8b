package ledger_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// granted is a scenario whose grant lets a task make so many calls, as a run of the task finds it.
func (d *fixture) granted(name, task string, calls int) *statestest.Scenario {
	d.TB.Helper()
	s := statestest.Find(d.TB, name)
	s.Content.Grants = []policy.Grant{{Name: "few", Tools: []policy.Granted{{
		Server: statestest.Server, Tool: statestest.Tool, Calls: &calls,
	}}}}
	s.Request.Task = task
	return &s
}

func TestTasksAreCounted(t *testing.T) {
	d := newFixture(t)
	for _, c := range []struct {
		name, scenario, task string
		code                 policy.Code
		calls                int
	}{
		{"first", "policy-allows", "one", "", 1},
		{"held-counts", "policy-holds", "one", policy.CodeApprovalRequired, 0},
		{"third-of-two", "policy-allows", "one", policy.CodeGrantExhausted, 0},
		{"blocked-does-not-count", "input-rule-hit", "two", policy.CodeInputDenied, 0},
		{"denied-does-not-count", "policy-denies-by-effect", "two", policy.CodePolicyDenied, 0},
		{"another-task", "policy-allows", "two", "", 1},
		{"another-task-again", "policy-allows", "two", "", 1},
		{"another-task-exhausted", "policy-allows", "two", policy.CodeGrantExhausted, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := d.granted(c.scenario, c.task, 2)
			o, _, err := d.play(ledgertest.NewID(t), s)
			if err != nil || o.Code != c.code || len(s.World.Calls) != c.calls {
				t.Errorf("play() = %+v, %v, %d calls; want %s", o, err, len(s.World.Calls), c.code)
			}
		})
	}
}

// Of many runs that all saw one place, one calls.
func TestOneTakesTheLastCall(t *testing.T) {
	d := newFixture(t)
	const many = 16
	var all []*statestest.Scenario
	for range many {
		all = append(all, d.granted("policy-allows", "one", 1))
	}
	fixtures := []*fixture{d, d.other()}
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			if _, _, err := fixtures[i%2].play(ledgertest.NewID(t), s); err != nil {
				t.Errorf("play() = %v", err)
			}
		})
	}
	wg.Wait()
	calls := 0
	for _, s := range all {
		calls += len(s.World.Calls)
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// addCalls adds rows of calls that were made, each with an id of its own.
func (d *fixture) addCalls(n int, q ledger.RunRow) {
	d.TB.Helper()
	q.Bundle, q.Updated = canonical.Sum("bundle", nil), statestest.At
	q.At, q.Sent, q.Ended, q.Server = statestest.At, statestest.At, statestest.At, statestest.Server
	check.NoError(d.TB, d.Store.Update(context.Background(), func(tx ledger.Tx) error {
		for i := range n {
			q.RunID, q.First = ledgertest.NewID(d.TB), int64(1_000_000+n+i) // far from entries, and from those of another number
			if err := tx.AddRun(q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// The most calls of a task that are counted, and one more; those to another tool are not among them.
func TestATaskOfTooManyCalls(t *testing.T) {
	d := newFixture(t)
	d.addCalls(1, ledger.RunRow{Task: "one", Tool: "another"})
	d.addCalls(ledger.MaxCounted, ledger.RunRow{Task: "one", Tool: statestest.Tool})
	d.must(d.granted("policy-allows", "one", ledger.MaxCounted), policy.CodeGrantExhausted)
	d.must(d.granted("policy-allows", "one", ledger.MaxCounted+1), "") // which is one more from here on
	s := d.granted("policy-allows", "one", policy.MaxGrantCalls)
	if o, _, err := d.play(ledgertest.NewID(t), s); err != nil || o.Code != policy.CodeRecordFailed || len(s.World.Calls) != 0 ||
		!strings.Contains(o.Reason, "another task") {
		t.Errorf("play() = %+v, %v, %d calls", o, err, len(s.World.Calls))
	}
}
