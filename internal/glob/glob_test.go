package glob_test

import (
	"strings"
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

func must(t testing.TB, pattern string) *glob.Glob {
	t.Helper()
	g, err := glob.Compile(pattern)
	if err != nil {
		t.Fatalf("Compile(%q) = %v", pattern, err)
	}
	return g
}

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

// TestNothing: what was not compiled matches nothing.
func TestNothing(t *testing.T) {
	for name, g := range map[string]*glob.Glob{"nil": nil, "zero": new(glob.Glob)} {
		if _, ok := g.Literal(); g.Match("") || g.Match("a") || g.MatchesAll() || ok || g.String() != "" {
			t.Errorf("%s: it matches something", name)
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
