package ledger_test

import (
	"context"
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

func TestActivate(t *testing.T) {
	active := statestest.MustBundle(statestest.Content(), nil)
	other := string(canonical.Sum("bundle", nil))
	d := newDesk(t)
	d.approved(nil)
	if err := d.Activate(context.Background(), active); err != nil {
		t.Fatal(err)
	}
	d.forge(t, []forgery{
		{"as-recorded", func(t *testing.T, all []ledger.Event) []ledger.Event {
			want := `{"build":"","bundle":"` + string(active.Digest()) + `","type":"bundle.activated"}`
			if e := all[len(all)-1]; e.Type != ledger.BundleActivated || e.RunID != "" || string(e.Payload) != want {
				t.Errorf("the last event is %+v, want %s", e, want)
			}
			return all
		}, ""},
		{"of-a-bundle-that-is-not-there", edits(ledger.BundleActivated, string(active.Digest()), other), "it is missing"},
		{"of-a-run", changes(ledger.BundleActivated, func(e *ledger.Event) { e.RunID = statestest.RunID }), "not a UUID"},
	}...)
}
