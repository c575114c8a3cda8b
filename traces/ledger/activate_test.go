package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

func TestActivate(t *testing.T) {
	active := statestest.MustBundle(statestest.Content(), nil)
	at := func(edit func(*testing.T, []ledger.Event) []ledger.Event) error {
		d := newDesk(t)
		d.approved(nil)
		if err := d.Activate(context.Background(), active); err != nil {
			t.Fatal(err)
		}
		return d.forge(func(all []ledger.Event) []ledger.Event { return edit(t, all) })
	}
	other := string(canonical.Sum("bundle", nil))
	for _, c := range []struct {
		name string
		edit func(*testing.T, []ledger.Event) []ledger.Event
		what string
	}{
		{"as-recorded", func(t *testing.T, all []ledger.Event) []ledger.Event {
			want := `{"build":"","bundle":"` + string(active.Digest()) + `","type":"bundle.activated"}`
			if e := all[len(all)-1]; e.Type != ledger.BundleActivated || e.RunID != "" || string(e.Payload) != want {
				t.Errorf("the last event is %+v, want %s", e, want)
			}
			return all
		}, ""},
		{"of-a-bundle-that-is-not-there", edits(ledger.BundleActivated, string(active.Digest()), other), "it is missing"},
		{"of-a-run", changes(ledger.BundleActivated, func(e *ledger.Event) { e.RunID = statestest.RunID }), "not a UUID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := at(c.edit)
			var fault *ledger.Fault
			if c.what == "" && err != nil || c.what != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), c.what)) {
				t.Errorf("Verify() = %v, want a fault with %q", err, c.what)
			}
		})
	}
}
