// Package glob matches names against patterns, and compares patterns with each other.
//
// # Patterns
//
// In a pattern `*` stands for any run of characters, also for none, and `?` for exactly one character. Everything else
// stands for itself, in the same case; there is no escape and there are no classes. A pattern is about the whole text:
// `read` does not match `read_file`, `read*` does. A character is a Unicode code point. A pattern is UTF-8, has 1 to
// [MaxPattern] bytes and at most [MaxStars] `*`.
//
// # Comparing
//
// [Includes] and [Overlaps] are exact for texts over all of Unicode: they answer for every text there is, not for a
// sample. They rest on one property of patterns: no pattern names every character, so whatever `*` and `?` in one
// pattern stand for can be a character that the other pattern does not name.
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

// A Glob is a pattern that was read. It is immutable and safe for concurrent use. A nil Glob and the zero Glob match
// nothing.
type Glob struct {
	pattern string
	prefix  string // what stands before the first wildcard
	rest    string // what stands behind prefix
	tokens  []rune // the pattern, with one and star
}

// Tokens that stand for no character of their own.
const (
	one  rune = -1 - iota // `?`
	star                  // `*`
)

// Compile reads a pattern. The error says which limit it breaks.
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
	g := &Glob{pattern: pattern, prefix: pattern, tokens: make([]rune, 0, len(pattern))}
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		g.prefix, g.rest = pattern[:i], pattern[i:]
	}
	for _, r := range pattern {
		switch r {
		case '*':
			r = star
		case '?':
			r = one
		}
		g.tokens = append(g.tokens, r)
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
	if g == nil || g.pattern == "" || g.rest != "" {
		return "", false
	}
	return g.prefix, true
}

// Prefix returns what every text that g matches begins with: the pattern up to its first wildcard.
func (g *Glob) Prefix() string {
	if g == nil {
		return ""
	}
	return g.prefix
}

// Any reports whether g matches every text.
func (g *Glob) Any() bool { return g != nil && g.pattern != "" && strings.Trim(g.pattern, "*") == "" }

// Match reports whether g matches the whole of text. It allocates nothing and takes at most as many steps as the
// lengths of text and pattern multiplied. A byte of text that is not UTF-8 counts as one character.
func (g *Glob) Match(text string) bool {
	if g == nil || g.pattern == "" || !strings.HasPrefix(text, g.prefix) {
		return false
	}
	s, p := text[len(g.prefix):], g.rest
	switch p {
	case "":
		return s == ""
	case "*":
		return true
	}
	return wild(p, s)
}

// wild matches by going on as long as it fits and, where it does not, letting the last `*` take one character more.
func wild(p, s string) bool {
	i, j := 0, 0
	behindStar, taken := -1, 0 // behind the last `*` in p; how far in s it reaches
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			i++
			behindStar, taken = i, j
			if i == len(p) {
				return true
			}
		case i < len(p) && p[i] == '?':
			i, j = i+1, j+width(s[j:])
		case i < len(p) && p[i] == s[j]:
			i, j = i+1, j+1
		case behindStar < 0:
			return false
		default:
			taken += width(s[taken:])
			i, j = behindStar, taken
		}
	}
	return strings.Trim(p[i:], "*") == ""
}

// width returns the bytes of the first character of s.
func width(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}
