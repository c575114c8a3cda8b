package ledger_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestBytesOfACall measures what one more call of an agent takes on disk, with all tables and indexes, if each step has a time of its
// own, which is the worst case. A small call takes 4 kB at most, and less than a tenth of that after it was pruned.
func TestBytesOfACall(t *testing.T) {
	returns := func(size int) func(*statestest.Scenario) {
		return func(s *statestest.Scenario) {
			text := (ledgertest.NewID(t) + strings.Repeat("x", size))[:size]
			s.World.Returned = &states.ToolReturned{Result: canonical.Text(`{"content":[{"type":"text","text":"` + text + `"}]}`)}
		}
	}
	for _, c := range []struct {
		name, scenario string
		change         func(*statestest.Scenario)
		prune          bool
		bound          int64
	}{
		{"allowed", "policy-allows", returns(32), false, 2500},
		{"allowed-4-KiB", "policy-allows", returns(4 << 10), false, 6700},
		{"denied", "policy-denies-by-effect", nil, false, 2000},
		{"held", "policy-holds", nil, false, 3000},
		{"allowed-and-pruned", "policy-allows", returns(4 << 10), true, 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := func(calls int) int64 {
				path := onDisk(t, func(d *fixture) {
					scenario := statestest.Find(t, c.scenario)
					agents(ledger.Anonymous)(&scenario)
					scenario.Content.Summary = policy.SummaryNever
					d.Clock.Tick(time.Millisecond)
					for range calls {
						s, world := scenario, *scenario.World
						s.World = &world
						if c.change != nil {
							c.change(&s)
						}
						if _, _, err := d.play(ledgertest.NewID(t), &s); err != nil {
							t.Fatal(err)
						}
					}
					if !c.prune {
						return
					}
					d.Clock.Set(t, "2026-12-21T09:00:00.000Z")
					if done := d.prunes("2026-12-20T09:00:00.000Z"); done.Runs != calls {
						t.Fatalf("%d of %d runs were pruned", done.Runs, calls)
					}
				})
				if c.prune {
					shrink(t, path)
				}
				info, err := os.Stat(path)
				check.NoError(t, err)
				return info.Size()
			}
			const few, many = 20, 160
			got := (size(many) - size(few)) / (many - few)
			t.Logf("%d bytes a call", got)
			if got > c.bound {
				t.Errorf("a call takes %d bytes, want at most %d", got, c.bound)
			}
		})
	}
}

// shrink gives the room of removed rows back, as an operator does with sqlite3.
func shrink(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	check.NoError(t, err)
	defer db.Close()
	if _, err := db.Exec("VACUUM"); err != nil {
		t.Fatal(err)
	}
}
