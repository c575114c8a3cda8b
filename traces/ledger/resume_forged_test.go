package ledger_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// Whoever writes all events and rows anew, with every hash, so that people were asked about something else than what the
// run's steps say, or so that they said something else, gets no call: the steps, and the machine that judges the votes again,
// do not agree. (Whoever writes the steps anew too has made another run, with votes about it that nobody cast: against that
// there are checkpoints.)
func TestAForgedLedgerIsNotCalled(t *testing.T) {
	other := string(canonical.Sum("other", nil))
	for _, c := range []struct {
		name string
		edit edit
		code policy.Code // of the run, if it ends; empty if it is refused
	}{
		{"server", edits(ledger.RequestCreated, `"server":"mcp-policy-kb"`, `"server":"mcp-policy-kc"`), policy.CodeApprovalMismatch},
		{"tool", edits(ledger.RequestCreated, `"tool":"fetch_policy_entry"`, `"tool":"delete_policy_entry"`), policy.CodeApprovalMismatch},
		{"argument-byte", edits(ledger.RequestCreated, `"policy_id":"policy-002"`, `"policy_id":"policy-003"`), policy.CodeApprovalMismatch},
		{"definition", digests(ledger.RequestCreated, "definition", other), policy.CodeApprovalMismatch},
		{"actor", edits(ledger.RequestCreated, statestest.Actor, "local:malice"), ""},
		{"bundle", digests(ledger.CommandStarted, "bundle", other), ""},
		{"env", edits(ledger.CommandStarted, `"env":"test"`, `"env":"prod"`), policy.CodeApprovalMismatch},
		{"risk-mode", edits(ledger.RiskScored, `"mode":"review"`, `"mode":"safe"`), policy.CodeApprovalMismatch},
		{"risk-score", edits(ledger.RiskScored, `"score":50`, `"score":5`), policy.CodeApprovalMismatch},
		{"reason", edits(ledger.DecisionMade, `A person looks.`, `A person nods.`), policy.CodeApprovalMismatch},
		{"quorum", edits(ledger.ApprovalRequested, `"quorum":1`, `"quorum":0`), ""},
		{"approvers", edits(ledger.ApprovalRequested, `["owners"]`, `["anyone"]`), policy.CodeApprovalMismatch},
		{"binding", digests(ledger.ApprovalRequested, "binding", other), ""},
		{"expires", edits(ledger.ApprovalRequested, `"expires":"2026-11-21T10`, `"expires":"2026-11-22T10`), policy.CodeApprovalMismatch},
		{"step-target", edits(ledger.ApprovalRequested, `"plan","validate"`, `"validate","plan"`), ""},
		{"no-hash-of-the-steps", changes(ledger.ApprovalRequested, func(e *ledger.Event) {
			e.Payload = regexp.MustCompile(`"last":"[^"]*"`).ReplaceAll(e.Payload, []byte(`"last":""`))
		}), ""},
		{"vote-about-something-else", edits(ledger.ApprovalApproved, `"binding":"sha256:`, `"binding":"`+other+`:`), ""},
		{"voter-without-the-role", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "eve" }), policy.CodeApprovalMismatch},
		{"voter-is-who-asked", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "Alice" }), policy.CodeApprovalMismatch},
		{"vote-too-late", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.At = "2026-11-21T10:00:00.000Z" }), policy.CodeApprovalExpired}, // with the clock
		{"no-vote-at-all", without(ledger.ApprovalApproved), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			forged := fixtureAt(t, d.forged(t, c.edit), d.Clock)
			if c.code == policy.CodeApprovalExpired {
				d.Clock.Set(t, "2026-11-21T10:00:00.000Z")
			}
			got, err := forged.resume(id, world(s))
			if len(s.World.Calls) != 0 {
				t.Fatalf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
			}
			if c.code != "" && (err != nil || got.Outcome.Type != states.TypeBlocked || got.Outcome.Code != c.code) {
				t.Errorf("resume() = %+v, %v; want blocked by %s", got.Outcome, err, c.code)
			}
			if c.code == "" && err == nil && got.Outcome.Type != states.TypeBlocked {
				t.Errorf("resume() = %+v, want a refusal", got.Outcome)
			}
		})
	}
}

// digests changes a digest of the last event of a type.
func digests(kind ledger.Type, member, to string) edit {
	return changes(kind, func(e *ledger.Event) {
		e.Payload = regexp.MustCompile(`"`+member+`":"[^"]*"`).ReplaceAll(e.Payload, []byte(`"`+member+`":"`+to+`"`))
	})
}

// A ledger in which nothing was forged is called, by the same ways.
func TestALedgerWrittenAnewIsCalled(t *testing.T) {
	d := newFixture(t)
	id, s := d.approved(nil)
	same := fixtureAt(t, d.forged(t, unedited), d.Clock)
	if got, err := same.resume(id, world(s)); err != nil || len(s.World.Calls) != 1 {
		t.Errorf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
	}
}

func TestEnded(t *testing.T) {
	d, ctx := newFixture(t), context.Background()
	id, s := d.approved(nil)
	p := d.replayer(nil)
	if _, err := d.Ended(ctx, p, id); !errors.Is(err, ledger.ErrUndecided) {
		t.Errorf("Ended() of a run that waits = %v", err)
	}
	want, err := d.resume(id, world(s))
	check.NoError(t, err)
	got, err := d.Ended(ctx, p, id)
	if err != nil || got.Outcome != want.Outcome || got.Head != want.Head || string(got.Run.Raw()) != string(want.Run.Raw()) {
		t.Errorf("Ended() = %+v, %v, want %+v", got.Outcome, err, want.Outcome)
	}
	if _, err := d.Ended(ctx, p, ledgertest.NewID(t)); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Ended() of no run = %v", err)
	}
	liar, err := ledger.Open(context.Background(), &lies{Store: d.Store, drop: ledger.ProxySent}, ledger.Options{Clock: d.Clock.Now})
	check.NoError(t, err)
	defer liar.Close()
	if _, err := liar.Ended(ctx, p, id); err == nil {
		t.Error("Ended() of a run without its last step = nil, want an error")
	}
}
