package ledger_test

import (
	"os"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestBytesOfACall measures what one more call of an agent takes on disk, with all tables and indexes. The bounds leave a fifth.
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
		bound          int64
	}{
		{"allowed", "policy-allows", returns(32), 3600},
		{"allowed-4-KiB", "policy-allows", returns(4 << 10), 9000},
		{"denied", "policy-denies-by-effect", nil, 3600},
		{"held", "policy-holds", nil, 4200},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := func(calls int) int64 {
				path := onDisk(t, func(d *desk) {
					for range calls {
						s := statestest.Find(t, c.scenario)
						agents(ledger.Anonymous)(&s)
						s.Content.Summary = policy.SummaryNever
						if c.change != nil {
							c.change(&s)
						}
						if _, _, err := d.play(ledgertest.NewID(t), &s); err != nil {
							t.Fatal(err)
						}
					}
				})
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				return info.Size()
			}
			const few, many = 20, 220
			got := (size(many) - size(few)) / (many - few)
			t.Logf("%d bytes a call", got)
			if got > c.bound {
				t.Errorf("a call takes %d bytes, want at most %d", got, c.bound)
			}
		})
	}
}
