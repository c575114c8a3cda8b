package present_test

import (
	"fmt"
	"iter"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// longLog is a log of many runs, newest first, of which it notes how many are read.
type longLog struct {
	ledger.Reader
	runs int
	read *int
}

func (l longLog) LastOfType(ledger.Type) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrNotFound
}

func (l longLog) Runs(f ledger.Filter) iter.Seq2[ledger.RunRow, error] {
	return func(yield func(ledger.RunRow, error) bool) {
		for i := range l.runs {
			*l.read++
			q := ledger.RunRow{RunID: fmt.Sprint(l.runs - i), At: fmt.Sprintf("%06d", l.runs-i), Server: "kb", Policy: "old", Sent: "x", Status: ledger.Failed}
			if i < present.MaxCounted {
				q.Policy = "new"
			}
			if f.Limit == i || !yield(q, nil) {
				return
			}
		}
	}
}

// TestCountsAreBounded: of a log of any length the newest runs are read, and the counts say since when.
func TestCountsAreBounded(t *testing.T) {
	c := statestest.Content()
	c.Policy = statestest.Policies(rules.Policy{ID: "new", Effect: rules.Deny}, rules.Policy{ID: "old", Effect: rules.Deny})
	b := statestest.MustBundle(c, nil)
	for _, tc := range []struct {
		name      string
		runs, new int
		since     string
		all       bool
	}{
		{"none", 0, 0, "", true}, {"one", 1, 1, "000001", true}, {"as-many", present.MaxCounted, present.MaxCounted, "000001", true},
		{"one-more", present.MaxCounted + 1, present.MaxCounted, "000002", false},
		{"many", 10 * present.MaxCounted, present.MaxCounted, "045001", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := 0
			log := longLog{runs: tc.runs, read: &read}
			p, err := present.NewPolicies(log, b)
			want := present.Window{Runs: tc.new, Since: tc.since, All: tc.all}
			if err != nil || p.Counted != want || p.Policies[0].Runs != tc.new || p.Policies[1].Runs != 0 || read > present.MaxCounted+1 {
				t.Errorf("NewPolicies() = %+v, %v; %d runs were read", p, err, read)
			}
			s, err := present.NewServers(log, []present.Server{{Server: "kb", Status: policy.ServerUp}}, "")
			if err != nil || s.Counted != want || s.Servers[0].Calls != tc.new || s.Servers[0].Failures != tc.new {
				t.Errorf("NewServers() = %+v, %v", s, err)
			}
		})
	}
}
