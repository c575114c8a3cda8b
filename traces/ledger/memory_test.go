package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

var errDisk = errors.New("the disk is full")

// TestCommitsAfterWhatTheCommitterDoesNotKnow: the committer remembers what it wrote. After a write of another process, or of this one
// beside the committer, and after a commit that failed or whose outcome it does not know, the next commit must still fit the log.
func TestCommitsAfterWhatTheCommitterDoesNotKnow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		between func(t *testing.T, d *fixture)
	}{
		{"another-process-commits", func(t *testing.T, d *fixture) { d.other().PassMessages(3) }},
		{"another-process-commits-and-ends", func(t *testing.T, d *fixture) {
			other := d.other()
			other.PassMessages(1)
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"a-commit-fails", func(t *testing.T, d *fixture) { failNext(t, d, ledgertest.Commit, errDisk) }},
		{"a-write-fails", func(t *testing.T, d *fixture) { failNext(t, d, ledgertest.PutToken, errDisk) }},
		{"the-outcome-of-a-commit-is-unknown", func(t *testing.T, d *fixture) {
			failNext(t, d, ledgertest.Committed, ledger.ErrUnsettled)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			d.PassMessages(5) // the tree of five entries has two complete trees
			s := statestest.Find(t, "policy-allows")
			id := ledgertest.NewID(t)
			run, rec := d.begin(id, &s)
			outcome, err := d.Machine.Advance(t.Context(), run, rec.Effects(s.Entry()), betweenCommits{rec, func() { tt.between(t, d) }})
			if err == nil {
				_, err = rec.Finish(t.Context(), outcome)
			}
			if err != nil || outcome.Code != "" {
				t.Fatalf("the run ends with %v, %v", outcome, err)
			}
			d.PassMessages(2)
			d.Inspect(func(r ledger.Reader) error {
				_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
				return err
			})
		})
	}
}

// TestCommitAfterAFailedFirstOne: a transaction that fails after it added an entry leaves no trace of that entry.
func TestCommitAfterAFailedFirstOne(t *testing.T) {
	d := newFixture(t)
	failNext(t, d, ledgertest.PutToken, errDisk) // the log's first entry was added before
	d.PassMessages(1)
	d.Inspect(func(r ledger.Reader) error {
		_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
		return err
	})
}

// failNext makes the next commit of the fixture fail: that of a new token.
func failNext(t *testing.T, d *fixture, op ledgertest.Op, cause error) {
	t.Helper()
	d.Store.Fail = func(place ledgertest.Op, _ int) error {
		if place == op {
			return cause
		}
		return nil
	}
	_, _, err := d.CreateToken(t.Context(), ledger.LocalUser("local:root"), "ann", ledger.RoleAgent, "")
	if !errors.Is(err, cause) {
		t.Errorf("CreateToken() = %v, want %v", err, cause)
	}
	d.Store.Fail = nil
}

// betweenCommits does something after the step that sends the call was recorded.
type betweenCommits struct {
	states.Recorder
	do func()
}

func (r betweenCommits) Append(ctx context.Context, s states.Step) error {
	err := r.Recorder.Append(ctx, s)
	if s.On == states.Dispatch {
		r.do()
	}
	return err
}

// TestRevokedTokensGetNoPermit: the gateway may have authenticated the requester long ago, and any process may have revoked the token since.
func TestRevokedTokensGetNoPermit(t *testing.T) {
	for _, by := range []string{"this-process", "another-process"} {
		for _, scenario := range []string{"policy-allows", "policy-holds", "policy-denies"} {
			t.Run(by+"/"+scenario, func(t *testing.T) {
				d := newFixture(t)
				requester := d.Caller(d.Token(alice, ledger.RoleAgent))
				if err := d.playCall(scenario, requester); err != nil { // the committer knows the token now
					t.Fatalf("with the token: %v", err)
				}

				revoking := d
				if by == "another-process" {
					revoking = d.other()
				}
				if _, err := revoking.RevokeToken(t.Context(), ledger.LocalUser("local:root"), requester.TokenID); err != nil {
					t.Fatal(err)
				}

				before := len(d.runs())
				if err := d.playCall(scenario, requester); !errors.Is(err, ledger.ErrToken) {
					t.Errorf("the call of a revoked token: %v, want %v", err, ledger.ErrToken)
				}
				if n := len(d.runs()); n != before {
					t.Errorf("there are %d runs, want %d", n, before)
				}
			})
		}
	}
}

// TestExpiredTokensGetNoPermit: a token may expire after the requester was authenticated.
func TestExpiredTokensGetNoPermit(t *testing.T) {
	d := newFixture(t)
	text, _, err := d.CreateToken(t.Context(), ledger.LocalUser("local:root"), alice, ledger.RoleAgent, inTime)
	check.NoError(t, err)
	requester := d.Caller(text)
	if err := d.playCall("policy-allows", requester); err != nil {
		t.Fatalf("before it expires: %v", err)
	}
	d.Clock.Set(t, inTime)
	if err := d.playCall("policy-allows", requester); !errors.Is(err, ledger.ErrToken) {
		t.Errorf("after it has expired: %v, want %v", err, ledger.ErrToken)
	}
}

// playCall plays a scenario's run as a call of a requester, and fails the test if a refused one reaches its server.
func (d *fixture) playCall(scenario string, requester ledger.Caller) error {
	d.TB.Helper()
	s := statestest.Find(d.TB, scenario)
	run := states.NewRun(ledgertest.NewID(d.TB), s.Request, statestest.MustBundle(s.Content, s.Decider))
	rec := d.BeginCall(traces.NewHeader(d.Machine, run), run, requester, false)
	defer rec.Abandon()
	o, err := d.Machine.Advance(context.Background(), run, rec.Effects(s.Entry()), rec)
	if err == nil && !o.Waits() {
		_, err = rec.Finish(context.Background(), o)
	}
	if err != nil && len(s.World.Calls) > 0 {
		d.TB.Errorf("the call was made although %v", err)
	}
	return err
}
