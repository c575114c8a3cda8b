package evidence

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/test/check"
)

// TestLock_Work counts the places that hostile payloads make the lock look at. A bound on each value alone would let
// many values cost as much as they like.
func TestLock_Work(t *testing.T) {
	cut := strings.Repeat("red green blues ", maxCandidates/4)
	for _, tt := range []struct {
		name, evidence string
		values         []string
		candidates     int
		found          bool
	}{
		{"overlapping-in-one-value", strings.Repeat("a a-", 99) + "a a",
			[]string{"x-" + strings.Repeat("a a-", 1<<16) + "x"}, maxCandidates, false},
		{"overlapping-in-many-values", strings.Repeat("a a-", 99) + "a a",
			slices.Repeat([]string{"x-" + strings.Repeat("a a-", 499) + "x"}, 99), maxCandidates, false},
		{"han-in-many-values", strings.Repeat("一", 666),
			slices.Repeat([]string{"x" + strings.Repeat("一", 1665) + "x"}, 99), maxCandidates, false},
		{"clean-place-is-the-first", "red green blue", []string{"red green blue, " + cut, cut, cut, cut, cut}, 1, true},
		{"clean-place-is-the-last-allowed", "red green blue",
			[]string{cut, cut, cut, cut[len("red green blues "):] + "red green blue"}, maxCandidates, true},
		{"clean-place-is-one-past", "red green blue", []string{cut, cut, cut, cut, "so red green blue"},
			maxCandidates, false},
		{"whole-value-is-past-them", "red green blue", []string{cut, cut, cut, cut, cut, "red green blue"},
			maxCandidates, false},
		{"too-short", "a", slices.Repeat([]string{strings.Repeat("a-a ", 99)}, 99), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json.Marshal(tt.values)
			check.NoError(t, err)
			found, err := locateItems(doc, Summary{[]Item{{Claim: "A claim.", Evidence: tt.evidence}}})
			check.NoError(t, err)
			if q := found[0]; q.candidates != tt.candidates || q.found != tt.found {
				t.Errorf("locate looks at %d places, found %t, want %d, %t",
					q.candidates, q.found, tt.candidates, tt.found)
			}
		})
	}
}
