package glob_test

import (
	"strings"
	"testing"

	"pgfsm/internal/glob"
)

func TestCompile(t *testing.T) {
	for _, tc := range []struct{ name, pattern, says string }{
		{"one-byte", "a", ""},
		{"longest", strings.Repeat("a", glob.MaxPattern), ""},
		{"one-byte-longer", strings.Repeat("a", glob.MaxPattern+1), "257 bytes"},
		{"longest-in-bytes-not-characters", strings.Repeat("é", glob.MaxPattern/2), ""},
		{"one-character-longer", strings.Repeat("é", glob.MaxPattern/2+1), "258 bytes"},
		{"most-stars", strings.Repeat("*a", glob.MaxStars), ""},
		{"one-star-more", strings.Repeat("*a", glob.MaxStars+1), "17 times"},
		{"empty", "", "empty"},
		{"not-utf8", "a\xff", "not UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := glob.Compile(tc.pattern)
			if tc.says == "" && (err != nil || g.String() != tc.pattern) {
				t.Errorf("Compile(%q) = %v, %v", tc.pattern, g, err)
			}
			if tc.says != "" && (err == nil || g != nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("Compile(%q) = %v, %v, want an error with %q", tc.pattern, g, err, tc.says)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, text string
		want                bool
	}{
		{"case", "read", "Read", false},
		{"case-behind-star", "*Read", "read", false},
		{"no-classes", "[ab]", "a", false},
		{"no-classes-literally", "[ab]", "[ab]", true},
		{"no-escape", `\*`, `*`, false},
		{"no-escape-literally", `\*`, `\x`, true},
		{"star-crosses-slash-and-dot", "a*b", "a/x.y\nb", true},
		{"question-is-a-character", "?", "é", true},
		{"question-takes-a-broken-byte", "a?b", "a\xffb", true},
		{"bytes-of-a-character-are-not-two", "*\u00a9", "\u00e9", false},
		{"combining-is-two-characters", "?", "e\u0301", false},
		{"nul", "a?b", "a\x00b", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := must(t, tc.pattern).Match(tc.text); got != tc.want {
				t.Errorf("Match(%q, %q) = %t, want %t", tc.pattern, tc.text, got, tc.want)
			}
		})
	}
}

// TestNothing: what was not compiled matches nothing, and is a part of everything.
func TestNothing(t *testing.T) {
	all := must(t, "*")
	for name, g := range map[string]*glob.Glob{"nil": nil, "zero": new(glob.Glob)} {
		if _, ok := g.Literal(); g.Match("") || g.Match("a") || g.MatchesAll() || ok || g.String() != "" {
			t.Errorf("%s: it matches something", name)
		}
		if glob.Overlaps(g, all) || glob.Overlaps(all, g) || glob.Includes(g, all) || !glob.Includes(all, g) {
			t.Errorf("%s: it compares as if it matched something", name)
		}
	}
}

func TestShape(t *testing.T) {
	for _, tc := range []struct {
		pattern      string
		literal, any bool
	}{
		{"read", true, false}, {"*", false, true}, {"***", false, true}, {"?", false, false},
		{"read*", false, false}, {"re?d*", false, false}, {"*?", false, false},
	} {
		g := must(t, tc.pattern)
		text, literal := g.Literal()
		if literal != tc.literal || g.MatchesAll() != tc.any || literal && text != tc.pattern {
			t.Errorf("%s: Literal() = %q, %t, Any() = %t", tc.pattern, text, literal, g.MatchesAll())
		}
	}
}

// TestCompare shows longer patterns than the comparison with all texts can.
func TestCompare(t *testing.T) {
	long := strings.Repeat("?", 200)
	for _, tc := range []struct {
		name, a, b         string
		includes, overlaps bool
	}{
		{"x-twice-so-one-behind", "*x?*", "*x*x*", false, true}, // true, and not found
		{"prefix", "read*", "read_file*", true, true},
		{"no-common-prefix", "read*", "write*", false, false},
		{"no-common-suffix", "*_file", "*_dir", false, false},
		{"exponential-for-subsets", "*a" + long, "*a" + long, true, true},
		{"exponential-not", "*a" + long, strings.Repeat("a*", 16) + long, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := must(t, tc.a), must(t, tc.b)
			if got := glob.Includes(a, b); got != tc.includes {
				t.Errorf("Includes(%s, %s) = %t, want %t", a, b, got, tc.includes)
			}
			if got, back := glob.Overlaps(a, b), glob.Overlaps(b, a); got != tc.overlaps || back != got {
				t.Errorf("Overlaps(%s, %s) = %t, back %t, want %t", a, b, got, back, tc.overlaps)
			}
		})
	}
}

// slow is what a pattern means, word by word.
func slow(p, s []rune) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == '*':
		return slow(p[1:], s) || len(s) > 0 && slow(p, s[1:])
	}
	return len(s) > 0 && (p[0] == '?' || p[0] == s[0]) && slow(p[1:], s[1:])
}

func TestMatchMeansWhatItSays(t *testing.T) {
	for _, p := range words("ab?*", 5)[1:] {
		g := must(t, p)
		for _, w := range words("abé", 5) {
			if got, want := g.Match(w), slow([]rune(p), []rune(w)); got != want {
				t.Fatalf("Match(%q, %q) = %t, want %t", p, w, got, want)
			}
		}
	}
}
