package screen

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A view is one reading of a text.
type view struct {
	text   string
	mapped bool // or folded
}

// views returns the views of t.
func views(t, folded string) []view {
	all, seen := []view{{folded, false}}, []string(nil)
	add := func(plain string) {
		if !slices.Contains(seen, plain) {
			seen = append(seen, plain)
			all = append(all, view{letters(plain), true})
		}
	}
	plain := plainLetters(folded)
	joined := join(plain)
	add(plain)
	add(joined)
	add(join(gather(plain)))
	add(shorten(joined, 1))
	add(shorten(joined, 2))
	gaps := gapsOf(plain)
	if len(gaps) >= manyGaps || anyOfIn(plain, gaps, hardGap) {
		add(apart(plain))
	}
	if anyOfIn(plain, gaps, sign) {
		add(join(split(plain)))
	}
	if wide := spaced(t); wide != "" {
		add(join(plainLetters(wide)))
	}
	if wide := unseen(t); wide != "" {
		add(apart(plainLetters(Fold(wide))))
	}
	if isASCII(t) {
		return all
	}
	add(join(plainLetters(Fold(strings.ReplaceAll(t, string(blankBraille), "")))))
	add(join(plainLetters(Fold(mapCapitals(t)))))
	if h := hidden(t); h != "" {
		all = append(all, views(h, Fold(h))...) // h is ASCII, and so hides no further text
	}
	return all
}

const (
	minRun       = 3        // equal letters in a row that no word has
	minPieces    = 4        // pieces in a row that are a word
	maxPiece     = 2        // bytes of a piece
	manyGaps     = 2        // separators between words that are not there by accident
	hardGap      = "_.:;!?" // the separators that no default pattern accepts between words
	blankBraille = '\u2800' // looks like a space, but is none
)

// A span is a part of a text.
type span struct{ from, to int }

// gapsOf returns the separators between words that are not spaces: "_" and "." in "make_me.some".
func gapsOf(s string) []span {
	var gaps []span
	for i := 1; i < len(s); i++ {
		end := i
		for isSolid(s[i-1]) && end < len(s) && isGap(s[end]) {
			end++
		}
		if end > i && end < len(s) && isSolid(s[end]) {
			gaps = append(gaps, span{i, end})
		}
	}
	return gaps
}

func isSolid(c byte) bool { return kind[c]&(letterByte|digitByte) != 0 }

func isGap(c byte) bool { return ' ' < c && c < utf8.RuneSelf && c != '\'' && !isSolid(c) }

// anyOfIn reports whether some of the spans of s have one of the characters.
func anyOfIn(s string, spans []span, characters string) bool {
	return slices.ContainsFunc(spans, func(at span) bool { return strings.ContainsAny(s[at.from:at.to], characters) })
}

// apart returns s with the separators between words replaced by a space: "make_me.some" is "make me some".
func apart(s string) string {
	b := []byte(s)
	for _, gap := range gapsOf(s) {
		copy(b[gap.from:gap.to], strings.Repeat(" ", gap.to-gap.from))
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// split returns s with signs replaced by separators, which [join] drops: in "r|a|n" they are no letters.
func split(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(sign, r) {
			return '-'
		}
		return r
	}, s)
}

// shorten returns s with each run of at least [minRun] equal letters cut to keep of them.
func shorten(s string, keep int) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		end := i + 1
		for end < len(s) && s[end] == s[i] {
			end++
		}
		n := end - i
		if n >= minRun && 'a' <= s[i] && s[i] <= 'z' {
			n = keep
		}
		b = append(b, s[i:i+n]...)
		i = end
	}
	return string(b)
}

// gather returns s with [minPieces] or more words in a row of at most [maxPiece] bytes put together:
// "ra ns om wa re" is "ransomware".
func gather(s string) string {
	words := strings.Split(s, " ")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(words); {
		end := i
		for end < len(words) && len(words[end]) <= maxPiece && words[end] != "" {
			end++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		if end-i >= minPieces {
			for _, w := range words[i:end] {
				b.WriteString(w)
			}
			i = end
			continue
		}
		b.WriteString(words[i])
		i++
	}
	return b.String()
}

// unseen returns s with invisible characters replaced by spaces, or "" if there are none: an invisible character can
// separate words as well as the letters of one. In ASCII, white space is not invisible: folding makes it spaces.
func unseen(s string) string {
	if isASCII(s) && !strings.ContainsFunc(s, func(r rune) bool { return isIgnorable(r) && !isSpace(r) }) {
		return ""
	}
	wide := strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return ' '
		}
		return r
	}, s)
	if wide == s {
		return ""
	}
	return wide
}
