package glob_test

import (
	"testing"

	"pgfsm/internal/glob"
)

// words returns every text over alphabet with up to most characters.
func words(alphabet string, most int) []string {
	all := []string{""}
	for from := 0; most > 0; most-- {
		to := len(all)
		for _, w := range all[from:to] {
			for _, r := range alphabet {
				all = append(all, w+string(r))
			}
		}
		from = to
	}
	return all
}

// TestCompareAgainstBruteForce holds Includes and Overlaps to what the patterns match, one text after the other. The
// third letter of the texts is the character that no pattern names. Texts are longer than the patterns by enough: a
// counterexample needs no joint with more characters than the other pattern has, and overlap no text longer than both.
func TestCompareAgainstBruteForce(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, text  string
		longest, longestText int
	}{
		{"two-letters", "ab?*", "abc", 4, 8},
		{"one-letter-and-longer", "a?*", "ac", 5, 12},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patterns := words(tc.pattern, tc.longest)[1:]
			texts := words(tc.text, tc.longestText)
			globs := make([]*glob.Glob, len(patterns))
			matched := make([][]uint64, len(patterns))
			for i, p := range patterns {
				globs[i] = must(t, p)
				matched[i] = make([]uint64, (len(texts)+63)/64)
				for k, text := range texts {
					if globs[i].Match(text) {
						matched[i][k/64] |= 1 << (k % 64)
					}
				}
			}
			var included, found, overlapping int
			for i, a := range globs {
				for k, b := range globs {
					includes, overlaps := true, false
					for w := range matched[i] {
						includes = includes && matched[k][w]&^matched[i][w] == 0
						overlaps = overlaps || matched[k][w]&matched[i][w] != 0
					}
					if glob.Includes(a, b) {
						found++
						if !includes {
							t.Fatalf("Includes(%s, %s) = true, want false", a, b)
						}
					}
					if got := glob.Overlaps(a, b); got != overlaps {
						t.Fatalf("Overlaps(%s, %s) = %t, want %t", a, b, got, overlaps)
					}
					if includes {
						included++
					}
					if overlaps {
						overlapping++
					}
				}
			}
			pairs := len(globs) * len(globs)
			if included == 0 || included == pairs || overlapping == 0 || overlapping == pairs {
				t.Errorf("of %d pairs %d include and %d overlap: the comparison shows nothing", pairs, included, overlapping)
			}
			if found < included*3/4 {
				t.Errorf("Includes() finds %d of %d pairs, want three quarters", found, included)
			}
		})
	}
}

func must(t testing.TB, pattern string) *glob.Glob {
	t.Helper()
	g, err := glob.Compile(pattern)
	if err != nil {
		t.Fatalf("Compile(%q) = %v", pattern, err)
	}
	return g
}
