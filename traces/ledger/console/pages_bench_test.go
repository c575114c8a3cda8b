package console_test

import (
	"cmp"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// BenchmarkPages measures the first page of each kind, with 1,000 held calls and PGFSM_CONSOLE_RUNS other runs, in a file.
func BenchmarkPages(b *testing.B) {
	runs, err := strconv.Atoi(os.Getenv("PGFSM_CONSOLE_RUNS"))
	if err != nil {
		runs = 2_000
	}
	const held, together = 1_000, 64
	d := newDeskOn(b, ledgertest.OpenURL(b, ledgertest.NewURL(b)), here)
	var next atomic.Int64
	var all sync.WaitGroup
	refusing := statestest.Find(b, "policy-denies-by-effect").Content
	for range together {
		all.Go(func() {
			for i := next.Add(1); i <= int64(runs); i = next.Add(1) {
				content := judging()
				if i%3 == 0 {
					content = refusing
				}
				d.play(content, statestest.NewWorld(), carol, statestest.Question)
			}
		})
	}
	all.Wait()
	for range held {
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
