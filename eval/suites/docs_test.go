package suites_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/test/check"
)

// TestDocsEvaluationHasTheFigures: the table of docs/internals/evaluation-figures.md has the figures that the suites are held to.
func TestDocsEvaluationHasTheFigures(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/evaluation-figures.md")
	check.NoError(t, err)
	for _, s := range table {
		row := fmt.Sprintf("| %s | %d |", s.name, s.want.Attacks)
		for _, arm := range attack.Usual() {
			row += fmt.Sprintf(" %d |", s.want.Made[arm])
		}
		row += fmt.Sprintf(" %d of %d | %d of %d |", s.want.Needs, s.want.Needs, s.want.Unattended, s.want.Needs)
		wilson := eval.NewShare(s.want.Made[attack.Approvals], s.want.Attacks)
		row += fmt.Sprintf(" %s %% | %.1f to %.1f %% |", s.want.Clustered, wilson.Low*100, wilson.High*100)
		if strings.Count(string(page), row) != 1 {
			t.Errorf("docs/internals/evaluation-figures.md does not have the row %q", row)
		}
	}
}
