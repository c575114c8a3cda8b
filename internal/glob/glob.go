// Package glob matches names against patterns.
//
// # Patterns
//
// In a pattern, `*` matches any run of characters, also none, and `?` exactly one character. All
// other characters match themselves, in the same case; there are no escapes and no classes. A
// pattern matches the whole text: `read` does not match `read_file`, `read*` does. A character is a
// Unicode code point. A pattern is UTF-8, has 1 to [MaxPattern] bytes and at most [MaxStars] `*`.
//
// # Comparing
//
// [Overlaps] is exact for every Unicode text: no pattern names every character, so `*` and `?` in
// one pattern can match a character that the other pattern does not name. [Includes] is never wrong
// when it says yes.
package glob

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a pattern.
const (
	MaxPattern = 256 // bytes
	MaxStars   = 16  // `*`
)

// A Glob is a compiled pattern. It is immutable and safe for concurrent use. A nil Glob and the
// zero Glob match nothing.
type Glob struct {
	pattern string
	tokens  []rune // the pattern, with question and star; in a run of wildcards the star is last
}

// Tokens of wildcards.
const (
	question rune = -1 - iota // `?`
	star                      // `*`
)

// Compile compiles a pattern. The error names the limit that the pattern breaks.
func Compile(pattern string) (*Glob, error) {
	stars := strings.Count(pattern, "*")
	switch {
	case pattern == "":
		return nil, fmt.Errorf("the pattern is empty; write * for anything")
	case len(pattern) > MaxPattern:
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(pattern), MaxPattern)
	case !utf8.ValidString(pattern):
		return nil, fmt.Errorf("the pattern %q is not UTF-8", pattern)
	case stars > MaxStars:
		return nil, fmt.Errorf("the pattern has %d times *, more than %d", stars, MaxStars)
	}

	g := &Glob{pattern: pattern, tokens: make([]rune, 0, len(pattern))}
	for _, r := range pattern {
		last := len(g.tokens) - 1
		behindStar := last >= 0 && g.tokens[last] == star
		switch {
		case r == '*' && behindStar:
		case r == '*':
			g.tokens = append(g.tokens, star)
		case r == '?' && behindStar:
			g.tokens = append(g.tokens[:last], question, star)
		case r == '?':
			g.tokens = append(g.tokens, question)
		default:
			g.tokens = append(g.tokens, r)
		}
	}

	return g, nil
}

// String returns the pattern.
func (g *Glob) String() string {
	if g == nil {
		return ""
	}
	return g.pattern
}

// Literal returns the only text that g matches, if it has no wildcard.
func (g *Glob) Literal() (string, bool) {
	if g == nil || g.pattern == "" || strings.ContainsAny(g.pattern, "*?") {
		return "", false
	}
	return g.pattern, true
}

// MatchesAll reports whether g matches every text.
func (g *Glob) MatchesAll() bool {
	return g != nil && g.pattern != "" && strings.Trim(g.pattern, "*") == ""
}

// Match reports whether g matches the whole of text. It allocates nothing and takes at most as many
// steps as the lengths of text and pattern multiplied. A byte of text that is not UTF-8 counts as
// one character. Where the pattern does not fit, Match lets the last `*` match one character more.
func (g *Glob) Match(text string) bool {
	if g == nil || g.pattern == "" {
		return false
	}

	p, s := g.pattern, text
	i, j := 0, 0
	behindStar, taken := -1, 0 // the place behind the last `*` in p, and the end of its match in s

	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			i++
			behindStar, taken = i, j
			if i == len(p) {
				return true
			}
		case i < len(p) && p[i] == '?':
			i, j = i+1, j+widthOf(s[j:])
		case i < len(p) && p[i] == s[j]:
			i, j = i+1, j+1
		case behindStar < 0:
			return false
		default:
			taken += widthOf(s[taken:])
			i, j = behindStar, taken
		}
	}

	return strings.Trim(p[i:], "*") == ""
}

// widthOf returns the bytes of the first character of s.
func widthOf(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}
