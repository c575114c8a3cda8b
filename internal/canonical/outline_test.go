package canonical_test

import (
	"testing"

	"pgfsm/internal/canonical"
)

func TestOutline(t *testing.T) {
	for doc, want := range map[string][2]int{ // in any order
		`1`: {1, 0}, `"a,{[b"`: {1, 0}, `{}`: {1, 1}, ` [ ] `: {1, 1}, `{"a":1}`: {2, 1}, `[1,"\",[",[]]`: {4, 2},
		`{"a":{"b":[1,2]},"c":{ }}`: {6, 3}, `[[],[],[[]]]`: {5, 3},
	} {
		if values, depth := canonical.Outline([]byte(doc)); values != want[0] || depth != want[1] {
			t.Errorf("Outline(%s) = %d, %d, want %v", doc, values, depth, want)
		}
	}
}
