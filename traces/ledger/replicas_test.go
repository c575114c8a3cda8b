package ledger_test

import (
	"context"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// TestReplicas: of the processes that ever served, those that are not gone are listed, each with its runs. Runs of processes that are gone
// are left over.
func TestReplicas(t *testing.T) {
	first := newFixture(t)
	second, third, other := first.other(), first.other(), first.other()
	content := statestest.Content()
	same := statestest.MustBundle(content, nil)
	content.Limits.ResultBytes--
	changed := statestest.MustBundle(content, nil)
	activate := func(d *fixture, want bool) {
		t.Helper()
		active := same
		if want {
			active = changed
		}
		check.NoError(t, d.RecordActivation(t.Context(), active, ledger.ActivationReason{Cause: ledger.CauseStart}))
	}
	activate(first, false)
	activate(second, false)
	activate(third, true)
	at := func(d *fixture) *ledger.Replicas {
		t.Helper()
		p, err := d.Replicas(t.Context())
		check.NoError(t, err)
		return &p
	}
	differs := func(d *fixture, own canonical.Digest, want bool) {
		t.Helper()
		if got, err := d.OtherBundle(t.Context(), own); err != nil || got != want {
			t.Errorf("OtherBundle() = %v, %v, want %v", got, err, want)
		}
	}
	first.Hold(1)
	by := first.Approver(alice)
	for d, n := range map[*fixture]int{second: 1, third: 2, other: 1} { // in any order
		for range n {
			run := d.Hold(1)
			d.vote(run.RunID, by, true)
			check.NoError(t, d.Claim(context.Background(), run.RunID))
		}
	}
	p := at(first)
	if len(p.Replicas) != 3 || p.Replicas[0].Runs != 0 || p.Replicas[1].Runs != 1 || p.Replicas[2].Runs != 2 || !p.BundlesDiffer ||
		p.Replicas[1].Owner != second.Owner() || p.Replicas[2].Bundle != changed.Digest() || p.Others != 1 || p.Waiting != 1 || p.Left != 0 {
		t.Errorf("%+v", p)
	}
	differs(first, same.Digest(), true)
	reload := func(d *fixture, to *policy.Bundle) {
		t.Helper()
		check.NoError(t, d.RecordActivation(t.Context(), to, ledger.ActivationReason{Cause: ledger.CauseSignal, Previous: same.Digest()}))
	}
	since := p.Replicas[1].Since
	reload(second, changed)
	if p = at(first); len(p.Replicas) != 3 || p.Replicas[1].Owner != second.Owner() || p.Replicas[1].Bundle != changed.Digest() || p.Replicas[1].Since != since {
		t.Errorf("after a reload: %+v", p)
	}
	reload(second, same)

	third.Store.Crash() // its claimed runs are approved, so they wait for another replica
	p = at(first)
	if len(p.Replicas) != 2 || p.BundlesDiffer || p.Waiting != 3 || p.Left != 0 {
		t.Errorf("without the third: %+v", p)
	}
	differs(first, same.Digest(), false)
	first.Clock.Add(time.Hour)
	if p = at(first); p.Left != 3 || p.Waiting != 0 {
		t.Errorf("when what waits has expired: %+v", p)
	}
}
