package gates

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

// TestDocsEvaluationHasTheFigures: the table of docs/internals/evaluation-figures.md has a row for each suite of the committed result.
func TestDocsEvaluationHasTheFigures(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/evaluation-figures.md")
	check.NoError(t, err)
	text, err := os.ReadFile("../results/offline_gate_eval.json")
	check.NoError(t, err)
	var result Report
	check.NoError(t, json.Unmarshal(text, &result))
	for _, s := range result.Suites {
		cases := strconv.Itoa(s.Cases)
		if n := len(cases); n > 3 {
			cases = cases[:n-3] + "," + cases[n-3:]
		}
		if row := fmt.Sprintf("| `%s` | %s | %d | %s |", s.Name, cases, s.Slips, s.Counted); strings.Count(string(page), row) != 1 {
			t.Errorf("docs/internals/evaluation-figures.md does not have the row %q", row)
		}
	}
}
