package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestLapse: a delegated call without a report ends after the time for it, in any process; recovery and resuming leave it alone before.
func TestLapse(t *testing.T) {
	ctx := context.Background()
	d := newFixture(t)
	s := statestest.Find(t, "hook-not-reported-yet")
	o, _, err := d.play(statestest.RunID, &s)
	check.NoError(t, err)
	if o.Type != states.TypeDelegated {
		t.Fatalf("the run is %+v", o)
	}
	recovered, err := d.Recover(ctx, d.replayer(nil))
	check.NoError(t, err)
	if len(recovered) > 0 {
		t.Errorf("Recover() = %+v, want the run left alone", recovered)
	}
	if err := d.Claim(ctx, statestest.RunID); !errors.Is(err, ledger.ErrStarted) {
		t.Errorf("Claim() = %v, want ErrStarted", err)
	}
	lapsed, err := d.Lapse(ctx, d.replayer(nil), time.Hour)
	check.NoError(t, err)
	if len(lapsed) > 0 {
		t.Errorf("Lapse() = %+v before the time", lapsed)
	}
	d.Clock.Add(time.Hour)
	lapsed, err = d.Lapse(ctx, d.replayer(nil), time.Hour)
	check.NoError(t, err)
	if len(lapsed) != 1 || lapsed[0].Err != nil || lapsed[0].Outcome.Type != states.TypeUnreported {
		t.Fatalf("Lapse() = %+v, want the run unreported", lapsed)
	}
	if _, err := d.Report(ctx, d.replayer(nil), statestest.RunID, ledger.LocalUser("local:alice"), &states.CallReported{}); err != nil {
		t.Errorf("a late report: %v", err)
	}
	d.sound()
}

// TestOneIDOneRun: the permit of an approved call is not handed out for an id of the client's call that another run has.
func TestOneIDOneRun(t *testing.T) {
	d := newFixture(t)
	asks := statestest.Find(t, "hook-held").Request
	asks.Actor = "ann"
	run, s := d.approved(func(s *statestest.Scenario) { s.Request = asks })
	other := statestest.Find(t, "hook-not-reported-yet")
	other.Request.Actor, other.Request.Session = "ann", &states.Session{Call: "call-2", Client: "claude", ID: "session-1"}
	if o, _, err := d.play(ledgertest.NewID(t), &other); err != nil || o.Type != states.TypeDelegated {
		t.Fatalf("play() = %+v, %v", o, err)
	}
	check.NoError(t, d.ClaimAsked(t.Context(), run))
	options := world(s)
	options.Call = "call-2"
	if _, err := d.Resume(t.Context(), d.replayer(nil), run, options); !errors.Is(err, ledger.ErrTaken) {
		t.Errorf("Resume() for an id of another run = %v, want ErrTaken", err)
	}
	if q := d.Run(run); q.Status != ledger.Approved || q.Sent != "" {
		t.Errorf("the run is %s, sent %q; want it approved and not handed out", q.Status, q.Sent)
	}
	d.sound()
}
