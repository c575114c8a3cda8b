package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// A task that has used its calls up gets none back by a prune, nor by the next one, nor in another process.
func TestAPruneGivesNoCallsBack(t *testing.T) {
	d := newFixture(t)
	d.must(d.granted("policy-allows", "one", 1), "")
	d.must(d.granted("policy-allows", "one", 1), policy.CodeGrantExhausted)
	d.must(d.granted("policy-denies-by-effect", "denied", 1), policy.CodePolicyDenied)
	d.must(d.granted("policy-allows", "two", 2), "")
	for i, before := range []string{"2026-11-21T09:10:00.000Z", "2026-11-21T09:20:00.000Z", "2026-11-21T09:30:00.000Z"} {
		d.Clock.Set(t, before)
		if done := d.prunes(before); done.Runs == 0 || len(d.runs()) != 0 {
			t.Fatalf("Prune(%s) = %+v, %d runs are left", before, done, len(d.runs()))
		}
		for _, at := range []*fixture{d, d.other()} {
			s := at.granted("policy-allows", "one", 1)
			at.must(s, policy.CodeGrantExhausted)
			if len(s.World.Calls) != 0 {
				t.Errorf("%d calls after a prune", len(s.World.Calls))
			}
		}
		if i == 0 { // what was pruned and what was not count together, and a call that was never sent does not
			d.must(d.granted("policy-allows", "two", 2), "")
			d.must(d.granted("policy-allows", "denied", 1), "")
		}
		d.must(d.granted("policy-allows", "two", 2), policy.CodeGrantExhausted)
		d.must(d.granted("policy-allows", "denied", 1), policy.CodeGrantExhausted)
		d.must(d.granted("policy-allows", fmt.Sprint("new-", i), 1), "")
	}
	d.sound()
}

// The most pairs of a task and a tool that a prune carries over, and one more.
func TestPruneCarriesSoMany(t *testing.T) {
	d := newFixture(t)
	id := d.must(d.granted("policy-allows", "one", 1), "")
	for _, c := range []struct {
		name   string
		before int
		with   string // a task that is among them
		ok     bool
	}{
		{"most", ledger.MaxCarried - 1, "", true},
		{"one-more", ledger.MaxCarried, "", false},
		{"most-and-it-is-among-them", ledger.MaxCarried, "one", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Inspect(func(r ledger.Reader) error {
				n, err := ledger.Carry(r, c.before, c.with, id)
				if c.ok && (err != nil || n != ledger.MaxCarried) || !c.ok && !errors.Is(err, ledger.ErrCarried) {
					t.Errorf("carry() = %d, %v", n, err)
				}
				return nil
			})
		})
	}
}

// What a prune says of tasks has one form, and forgets nothing that the prune before it said.
func TestVerifyNamesForgedCallsOfTasks(t *testing.T) {
	d := newFixture(t)
	d.must(d.granted("policy-allows", "one", 5), "")
	d.Clock.Set(t, "2026-11-21T09:01:00.000Z")
	d.must(d.granted("policy-allows", "two", 5), "")
	d.Clock.Set(t, "2026-11-21T09:02:00.000Z")
	d.hold(nil) // what is behind it stays: both words of prunes
	for _, before := range []string{"2026-11-21T09:01:00.000Z", "2026-11-21T09:02:00.000Z"} {
		if done := d.prunes(before); done.Runs != 1 {
			t.Fatalf("Prune(%s) = %+v", before, done)
		}
	}
	const call = `{"calls":%d,"server":"` + statestest.Server + `","task":%q,"tool":"` + statestest.Tool + `"}`
	one, two := fmt.Sprintf(call, 1, "one"), fmt.Sprintf(call, 1, "two")
	of := func(name, from, to, what string) forgery {
		return forgery{name, edits(ledger.LedgerPruned, from, to), what}
	}
	d.forge(t,
		forgery{"nothing-changed", unedited, ""},
		of("none", one, fmt.Sprintf(call, 0, "one"), "it carries 0 calls"),
		of("too-many", one, fmt.Sprintf(call, policy.MaxGrantCalls+1, "one"), "it carries 1000001 calls"),
		of("of-no-task", one, fmt.Sprintf(call, 1, ""), "it carries 1 calls"),
		of("twice", two, one, "not in order"),
		of("forgotten", one+",", "", "it forgets calls of task \"one\""),
		of("out-of-order", one+","+two, two+","+one, "not in order"),
	)
}
