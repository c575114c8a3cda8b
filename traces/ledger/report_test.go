package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
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
	within := func(server, tool string) time.Duration {
		if q := d.Run(statestest.RunID); server != q.Server || tool != q.Tool {
			t.Errorf("Lapse() asks for the time of %s %s, want %s %s", server, tool, q.Server, q.Tool)
		}
		return time.Hour
	}
	lapsed, err := d.Lapse(ctx, d.replayer(nil), within)
	check.NoError(t, err)
	if len(lapsed) > 0 {
		t.Errorf("Lapse() = %+v before the time", lapsed)
	}
	d.Clock.Add(time.Hour)
	lapsed, err = d.Lapse(ctx, d.replayer(nil), within)
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
	run, s := d.approvedHook()
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

// TestClaimWithin: a client that makes the call itself may use an approval for as long as the settings of the run say, also when the
// hold would have expired. After that, the run ends as expired.
func TestClaimWithin(t *testing.T) {
	decided, err := time.Parse(time.RFC3339, inTime)
	check.NoError(t, err)
	ends := decided.Add(ledgertest.ClaimWithin)
	for _, c := range []struct {
		name string
		at   time.Time
		want states.Outcome
	}{
		{"after-the-hold-would-have-expired", ends.Add(-time.Millisecond), states.Outcome{Type: states.TypeDelegated}},
		{"too-late", ends, states.Outcome{Type: states.TypeBlocked, Code: policy.CodeApprovalExpired}},
	} {
		for _, asks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s-asked-%t", c.name, asks), func(t *testing.T) {
				d := newFixture(t)
				run, s := d.approvedHook()
				if q := d.Run(run); q.Expires != ends.Format(policy.TimeForm) {
					t.Fatalf("the approval expires at %s, want %s", q.Expires, ends)
				}
				d.Clock.Set(t, c.at.Format(policy.TimeForm))
				var o states.Outcome
				if asks {
					check.NoError(t, d.ClaimAsked(t.Context(), run))
					resumed, err := d.Resume(t.Context(), d.replayer(nil), run, world(s))
					check.NoError(t, err)
					o = resumed.Outcome
				} else {
					recovered, err := d.Recover(t.Context(), d.replayer(nil))
					check.NoError(t, err)
					if c.want.Type == states.TypeDelegated {
						c.want = states.Outcome{} // it waits
					}
					if len(recovered) > 0 {
						o = recovered[0].Outcome
					}
				}
				if o.Type != c.want.Type || o.Code != c.want.Code {
					t.Errorf("the outcome is %+v, want %+v", o, c.want)
				}
				d.Inspect(func(r ledger.Reader) error {
					_, err := ledger.BoundOf(r, d.replayer(nil), run)
					return err
				})
				d.forge(t, forgery{"nothing-changed", unedited, ""})
			})
		}
	}
}

// approvedHook returns a run of a hook that a person has approved.
func (d *fixture) approvedHook() (string, *statestest.Scenario) {
	d.TB.Helper()
	return d.approved(func(s *statestest.Scenario) {
		s.Request = statestest.Find(d.TB, "hook-held").Request
		s.Request.Actor = "ann"
	})
}
