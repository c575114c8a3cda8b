package api_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// BenchmarkPages measures the first page of each kind, with 200 held calls and 2,000 other runs, in a file.
func BenchmarkPages(b *testing.B) {
	d := newFixtureOn(b, ledgertest.NewStore(b), here)
	refusing := statestest.Find(b, "policy-denies-by-effect").Content
	for i := range 2_000 {
		content := judging()
		if i%3 == 0 {
			content = refusing
		}
		d.play(content, statestest.NewWorld(), carol, statestest.Question)
	}
	for range 200 {
		d.Hold(1)
	}
	run := d.Hold(1).RunID
	d.with(judging())
	v := d.signedIn(here, "erin@example.com", ledger.RoleAuditor)
	for _, page := range []string{"", "calls/" + run, "runs", "runs/" + run, "now", "now?since=168h", "log", "policy", "servers"} {
		b.Run("page="+cmp.Or(strings.TrimSuffix(page, run), "inbox"), func(b *testing.B) {
			for b.Loop() {
				v.page(page).want(b, http.StatusOK)
			}
		})
	}
}
