package report

import (
	"strings"
	"testing"

	"pgfsm/eval/attack"
	"pgfsm/fsm"
)

// TestEdgesInTheOrderOfTheTable: edges that the table does not have come last, and are not drawn.
func TestEdgesInTheOrderOfTheTable(t *testing.T) {
	m, err := newMachine()
	if err != nil {
		t.Fatal(err)
	}
	strange := edge{fsm.Mark{From: `<script>`, On: "x", To: "blocked"}, 7}
	edges := []edge{strange, {fsm.Mark{From: m.spec.Rows[1].From, On: m.spec.Rows[1].On, To: m.spec.Rows[1].To}, 1}}
	if byTable(m.spec, edges); edges[1] != strange {
		t.Errorf("byTable() = %v, want %v last", edges, strange)
	}
	if drawn := string(draw(m.spec, edges)); strings.Contains(drawn, "script") || !strings.Contains(drawn, "\ntaken by 1<") {
		t.Errorf("draw() =\n%s", drawn)
	}
}

func TestResultsOfAnotherMachine(t *testing.T) {
	m, err := newMachine()
	if err != nil {
		t.Fatal(err)
	}
	f := &attackFile{result: &attack.Result{Machine: m.digest, Arms: []attack.Arm{attack.Approvals}}}
	f.result.Overall.Arms = []attack.ArmSection{{Arm: attack.Approvals, Edges: attack.Edges{Wants: []attack.Edge{{From: "received", On: "screen", To: "screened", Runs: 1}}}}}
	for _, other := range []bool{false, true} {
		if other {
			f.result.Machine = "sha256:0"
		}
		if blocks := f.paths(m); strings.Contains(blocks[0].Para, "another machine") != other {
			t.Errorf("paths() = %q, want a note about another machine: %t", blocks[0].Para, other)
		}
	}
}
