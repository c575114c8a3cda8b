package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

func TestActivate(t *testing.T) {
	active := statestest.MustBundle(statestest.Content(), nil)
	content := statestest.Content()
	content.Limits.ResultBytes--
	next := statestest.MustBundle(content, nil)
	other := string(canonical.Sum("bundle", nil))
	d := newFixture(t)
	generation := `"env":"test","events":1,"format":"pgfsm.trace/v1","machine":"` + string(d.Machine.Digest()) + `"`
	d.approved(nil)
	admin := presented(t, d, "root", ledger.RoleAdmin)
	check.NoError(t, d.RecordActivation(context.Background(), active, ledger.ActivationReason{Cause: ledger.CauseStart}))
	claims := ledger.ActivationReason{Cause: ledger.CauseSignal, Previous: active.Digest(), Changed: []string{"claims"}, Proved: []string{"alive"}}
	check.NoError(t, d.RecordActivation(context.Background(), active, claims))
	why := ledger.ActivationReason{Cause: ledger.CauseReload, By: &admin, Previous: active.Digest(), Changed: []string{"limits"}, Proved: []string{"alive", "no-deletes"}}
	check.NoError(t, d.RecordActivation(context.Background(), next, why))
	d.forge(t, []forgery{
		{"as-recorded", func(t *testing.T, all []ledger.Event) []ledger.Event {
			for i, want := range []string{
				`{"build":"","bundle":"` + string(active.Digest()) + `","cause":"start",` + generation + `,"type":"bundle.activated"}`,
				`{"build":"","bundle":"` + string(active.Digest()) + `","cause":"signal","changed":["claims"],` + generation +
					`,"previous":"` + string(active.Digest()) + `","proved":["alive"],"type":"bundle.activated"}`,
				`{"actor":"root","build":"","bundle":"` + string(next.Digest()) + `","cause":"reload","changed":["limits"],` + generation +
					`,"previous":"` + string(active.Digest()) + `","proved":["alive","no-deletes"],"type":"bundle.activated"}`,
			} {
				if e := all[len(all)-3+i]; e.Type != ledger.BundleActivated || e.RunID != "" || string(e.Payload) != want {
					t.Errorf("event %d is %+v %s, want %s", i, e, e.Payload, want)
				}
			}
			return all
		}, ""},
		{"of-a-bundle-that-is-not-there", edits(ledger.BundleActivated, `"bundle":"`+string(next.Digest()), `"bundle":"`+other), "it is missing"},
		{"of-a-run", changes(ledger.BundleActivated, func(e *ledger.Event) { e.RunID = statestest.RunID }), "is about no run"},
		{"of-nobody", edits(ledger.BundleActivated, `"actor":"root",`, ``), "do not belong together"},
		{"of-an-unknown-cause", edits(ledger.BundleActivated, `"reload"`, `"luck"`), "do not belong together"},
		{"without-a-bundle-before", edits(ledger.BundleActivated, `"previous":"`+string(active.Digest())+`",`, ``), "do not belong together"},
	}...)
}

// TestActivateRefused: the ledger records a reload only if its caller may reload then.
func TestActivateRefused(t *testing.T) {
	active := statestest.MustBundle(statestest.Content(), nil)
	d := newFixture(t)
	for _, tt := range []struct {
		name, role string
		revoked    bool
		want       ledger.RefusalCode
	}{
		{"an-approver", ledger.RoleApprover, false, ledger.RefusedRole},
		{"an-auditor", ledger.RoleAuditor, false, ledger.RefusedRole},
		{"an-agent", ledger.RoleAgent, false, ledger.RefusedRole},
		{"a-revoked-admin", ledger.RoleAdmin, true, ledger.RefusedToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by := presented(t, d, tt.name, tt.role)
			if tt.revoked {
				d.revokeAs(by, by.TokenID)
			}
			before := d.count(ledger.BundleActivated)
			err := d.RecordActivation(t.Context(), active, ledger.ActivationReason{Cause: ledger.CauseReload, By: &by, Previous: active.Digest()})
			var refused *ledger.Refusal
			if !errors.As(err, &refused) || refused.Code != tt.want || d.count(ledger.BundleActivated) != before {
				t.Errorf("Activate() = %v, and the log has %d activations, want %d", err, d.count(ledger.BundleActivated), before)
			}
		})
	}
}

// presented creates a token, and returns the caller who presents it.
func presented(t *testing.T, d *fixture, name, role string) ledger.Caller {
	t.Helper()
	text, _, err := d.CreateToken(t.Context(), ledger.LocalUser("local:root"), name, role, "")
	check.NoError(t, err)
	who, err := d.Authenticate(t.Context(), text)
	check.NoError(t, err)
	return who
}
