package gates

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shownBy finds the keys of the result in a section of docs/internals/invariants.md: they stand behind this sentence's beginning, up to
// its full stop, in back ticks.
var shownBy = regexp.MustCompile("`pgfsm-eval gates` shows it under ([^.]*)\\.")

// keysOf lists the keys that a section names, and whether it has the sentence.
func keysOf(section string) (keys []string, has bool) {
	m := shownBy.FindStringSubmatch(strings.Join(strings.Fields(section), " "))
	if m == nil {
		return nil, false
	}
	for _, key := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(m[1], -1) {
		keys = append(keys, key[1])
	}
	return keys, true
}

// TestDocsInvariantsNameTheirKeys: every invariant names the key of the result that shows it, or says why there is none; every
// key that is named is one of the result's; and every key is named.
func TestDocsInvariantsNameTheirKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) < 9 {
		t.Fatalf("docs/internals/invariants.md has %d sections: the search is blind", len(sections))
	}
	var named []string
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		if title == "Tests" {
			continue
		}
		keys, has := keysOf(section)
		if !has && !strings.Contains(strings.Join(strings.Fields(section), " "), "No suite of `pgfsm-eval gates` shows it") {
			t.Errorf("%q does not say which key of `pgfsm-eval gates` shows it", title)
		}
		if has && len(keys) == 0 {
			t.Errorf("%q names no key", title)
		}
		for _, key := range keys {
			if !slices.Contains(Names(), key) {
				t.Errorf("%q names the key %s, which the result does not have", title, key)
			}
		}
		named = append(named, keys...)
	}
	for _, key := range Names() {
		if !slices.Contains(named, key) {
			t.Errorf("docs/internals/invariants.md does not say what %s shows", key)
		}
	}
}

// TestDocsEvaluationHasTheFigures: the table of docs/internals/evaluation-figures.md has a row for each suite of the committed result.
func TestDocsEvaluationHasTheFigures(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/evaluation-figures.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../results/offline_gate_eval.json")
	if err != nil {
		t.Fatal(err)
	}
	var result Report
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
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
