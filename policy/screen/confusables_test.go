package screen

import (
	"testing"
	"unicode/utf8"
)

func TestLookalikes_OneLetterEachAndStillThereAfterFolding(t *testing.T) {
	seen := map[rune]byte{}
	for _, row := range lookalikes {
		for _, r := range row.like {
			if before, twice := seen[r]; twice {
				t.Errorf("%U looks like both %c and %c", r, before, row.letter)
			}
			seen[r] = row.letter
			if r < utf8.RuneSelf {
				t.Errorf("%q is ASCII", r)
			}
			if Fold(string(r)) != string(r) {
				t.Errorf("%U folds to %q and is never looked up", r, Fold(string(r)))
			}
		}
	}
	if len(seen) < 250 {
		t.Errorf("there are %d look-alikes, want at least 250", len(seen))
	}
}
