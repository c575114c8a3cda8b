package prove

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDivideTexts compares the texts of every vector with package regexp, for texts of an enumeration.
func TestDivideTexts(t *testing.T) {
	patterns := []string{
		`^a`, `b$`, `a.b`, `(?s)a.b`, `\bab\b`, `\Bb`, `(?i)k`, `(?i)^ſ`, `(?m)^b`, `(?m)a$`, `[^a]`, `.*`, `^$`, `^[a-z]+$`, `^(ab|a)*$`,
		`^.{2,3}$`, `\d`, `\pL\z`, `x|`, `[[:^alpha:]]`, `^\x{10FFFF}`, `a{3}`, `^(a|b)*abb$`, `\Aab\z`, `\AKk\z`, `é`, `[\x00-\x1f]`, `^-?[0-9]+(\.[0-9]+)?$`,
	}
	alphabet := []string{"", "a", "b", "k", "K", "s", "ſ", "é", "0", "1", "-", ".", " ", "\n", "\U0010FFFF", "_", "x"}
	var texts []string
	for _, one := range alphabet {
		for _, two := range alphabet {
			for _, three := range alphabet {
				texts = append(texts, one+two+three, one+two+three+"ab", "ab"+one+two+three)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var chosen []string
		for range 1 + r.IntN(5) {
			chosen = append(chosen, patterns[r.IntN(len(patterns))])
		}
		sizes := [][]int{nil, {0}, {2}, {1, 4}}[r.IntN(4)]
		t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			var compiled []*regexp.Regexp
			for _, p := range chosen {
				compiled = append(compiled, regexp.MustCompile(p))
			}
			vectorOf := func(text string) string {
				var b strings.Builder
				for _, size := range sizes {
					n := len([]rune(text))
					fmt.Fprint(&b, n < size, n == size)
				}
				for _, p := range compiled {
					fmt.Fprint(&b, p.MatchString(text))
				}
				return b.String()
			}
			found, ok := divideTexts(chosen, sizes)
			if !ok {
				t.Fatalf("divideTexts(%q) has too many states", chosen)
			}
			vectors := map[string]bool{}
			for _, text := range found {
				if vectors[vectorOf(text)] {
					t.Errorf("divideTexts(%q, %v) has two texts like %q, so the automata and package regexp differ", chosen, sizes, text)
				}
				vectors[vectorOf(text)] = true
			}
			for _, text := range texts {
				if !vectors[vectorOf(text)] {
					t.Fatalf("divideTexts(%q, %v) = %q has no text like %q", chosen, sizes, found, text)
				}
			}
		})
	}
}

// TestDivideAmong keeps a text besides the literals wherever there is one.
func TestDivideAmong(t *testing.T) {
	for _, tt := range []struct {
		name     string
		literals []string
		pattern  string
		others   int // texts that are no literal
	}{
		{"the-shortest-are-literals", []string{"", "a", "b"}, `^[ab]?$`, 1},
		{"only-literals-match", []string{"a", "b"}, `^(a|b)$`, 1},
		{"one-more-matches", []string{"a", "b"}, `^[abc]$`, 2},
		{"empty", []string{""}, `x`, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			texts, ok := divideAmong(tt.literals, []string{tt.pattern}, nil)
			if !ok {
				t.Fatal("divideAmong() has too many states")
			}
			others := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return slices.Contains(tt.literals, s) })
			if len(others) != tt.others || len(texts) != len(others)+len(tt.literals) {
				t.Errorf("divideAmong(%q, %s) = %q, want the literals and %d more", tt.literals, tt.pattern, texts, tt.others)
			}
		})
	}
}

// TestTooManyStates gives up on patterns whose automata have too many states together.
func TestTooManyStates(t *testing.T) {
	if texts, ok := divideTexts([]string{`^(a|b)*a(a|b){13}$`, `^(a|b)*b(a|b){14}$`}, nil); ok {
		t.Errorf("divideTexts() = %d texts, want none", len(texts))
	}
}
