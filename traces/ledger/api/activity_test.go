package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// TestNow: the page counts the runs of a period. testdata/pages/now.txt is what it says of them.
func TestNow(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("now").want(t, http.StatusOK, "No run was requested in this period", "No gateway has started",
		"pgfsm ledger summary --since 24h", "The service is ready")
	d.Ask(carol, statestest.Content())
	d.Clock.Add(45 * time.Minute)
	d.Hold(1)
	d.Clock.Add(time.Minute)
	b.page("now?since=30m").want(t, http.StatusOK, "<dd>1<small>since ")
	got := b.page("now")
	if got.want(t, http.StatusOK, "<dd>2<small>since ", `since=24h" aria-current="true"`); strings.Contains(got.body, "/log/") {
		t.Error("an approver gets links to entries, which only auditors see")
	}
	b.page("now?since=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE").want(t, http.StatusBadRequest, "give a date", "&lt;script&gt;")
}

// TestNowIsPartial: the page says so if it did not count all runs.
func TestNowIsPartial(t *testing.T) {
	d := newFixture(t)
	at := d.Clock.Now().Format(policy.TimeForm)
	err := d.Update(t.Context(), func(tx ledger.Tx) error {
		for i := range ledger.MaxRecent + 5 {
			q := ledger.RunRow{
				RunID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), First: int64(i), At: at, Updated: at, Ended: at,
				Status: ledger.Denied, Code: hostile, Bundle: canonical.Sum("b", nil),
			}
			if i%2 == 0 {
				q.Code = fmt.Sprint("code_", i%40)
			}
			if i < ledger.MaxWaits+2 {
				q.RunID, q.Binding = fmt.Sprintf("10000000-0000-7000-8000-%012d", i), canonical.Sum("b", nil)
			}
			if err := tx.AddRun(q); err != nil {
				return err
			}
		}
		return nil
	})
	check.NoError(t, err)
	d.Clock.Add(time.Minute)
	got := d.signedIn(here, alice, ledger.RoleAuditor).page("now")
	got.want(t, http.StatusOK, "only the newest are counted: the last 10000 of the period", "the period has more", "0 of the last 200 held calls", "11 more codes are less frequent",
		`<mark class="odd">\u202e</mark>`)
	if visible.Lines(got.body) != got.body || strings.Count(got.body, "<script") != 1 || strings.Contains(got.body, "<img") {
		t.Errorf("a code became markup: %s", got.body)
	}
}
