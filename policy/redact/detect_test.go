package redact_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy/redact"
)

// detectors are all detectors.
var detectors = []string{"email", "iban", "card", "us_ssn", "phone"}

// TestDetectors takes what each detector finds, and what looks alike, from a table of data.
func TestDetectors(t *testing.T) {
	table, err := os.ReadFile("testdata/detectors.txt")
	check.NoError(t, err)
	line := regexp.MustCompile(`^(\w+) +(.*?)(?: +=> (.*))?$`)
	hits, misses := map[string]int{}, map[string]int{}
	for text := range strings.Lines(string(table)) {
		row := line.FindStringSubmatch(strings.TrimRight(text, "\n"))
		if strings.HasPrefix(text, "#") || row == nil {
			continue
		}
		name, text, want := row[1], row[2], strings.ReplaceAll(row[3], "#", redact.Mask)
		if row[3] == "" {
			want = text
			misses[name]++
		} else {
			hits[name]++
		}
		set, err := redact.Compile([]redact.Rule{{ID: "r", Find: []string{name}}})
		check.NoError(t, err)
		done := set.Text(text)
		if string(done.Text) != want || (len(done.Hits) > 0) != (row[3] != "") {
			t.Errorf("%s: %q becomes %q with %v, want %q", name, text, done.Text, done.Hits, want)
		}
		if again := set.Text(string(done.Text)); len(again.Hits) > 0 {
			t.Errorf("%s: %q is found again", name, done.Text)
		}
	}
	for _, name := range detectors {
		if hits[name] < 2 || misses[name] < 5 {
			t.Errorf("%s: %d findings and %d near misses in the table", name, hits[name], misses[name])
		}
	}
}
