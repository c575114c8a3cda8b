package screen

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// views calls look with each view of t and whether it is mapped: the same ones in the same order each time, for what it
// takes to judge them is counted.
func views(t, folded string, look func(view string, mapped bool)) {
	look(folded, false)
	if isWord(t) {
		wordViews(t, look)
		return
	}
	plain := plainLetters(folded)
	look(letters(plain), true)
	joined := join(plain)
	if joined != plain {
		look(letters(joined), true)
	}
	ascii := isASCII(t)
	if ascii && folded == t { // without wide spaces and what leaves no mark
		shapeViews(plain, joined, look)
		return
	}
	if wide := spaced(t); wide != "" {
		look(Skeleton(wide), true)
	}
	shapeViews(plain, joined, look)
	if gaps := unseen(t); gaps != "" {
		look(mapLetters(apart(plainLetters(Fold(gaps)))), true)
	}
	if ascii {
		return
	}
	if strings.ContainsRune(t, blankGlyph) {
		look(Skeleton(Fold(strings.ReplaceAll(t, string(blankGlyph), ""))), true)
	}
	if capitals := Skeleton(Fold(mapCapitals(t))); capitals != joined {
		look(capitals, true)
	}
	if h := hidden(t); h != "" {
		views(h, Fold(h), look) // ASCII: ends here
	}
}

// isWord reports whether s is small ASCII letters and nothing else.
func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 'a' || 'z' < s[i] {
			return false
		}
	}
	return s != ""
}

// wordViews is what [views] comes to for such a word, as most names and many texts in a call are: it is folded, has no
// gaps, signs or pieces, and nothing in it is to be put together.
func wordViews(t string, look func(view string, mapped bool)) {
	look(letters(t), true)
	if shapeOf(t).runs {
		look(letters(shorten(t, 1)), true)
		look(letters(shorten(t, 2)), true)
	}
}

// shapeViews are the views that a text has reason for.
func shapeViews(plain, joined string, look func(view string, mapped bool)) {
	found := shapeOf(plain)
	if found.gaps {
		look(letters(apart(plain)), true)
	}
	if found.signs {
		look(letters(join(split(plain))), true)
	}
	if found.runs {
		look(letters(shorten(joined, 1)), true)
		look(letters(shorten(joined, 2)), true)
	}
	if found.pairs {
		look(letters(join(gather(plain))), true)
	}
}

// A shape is what in a text gives reason to read it in one more way.
type shape struct {
	gaps  bool // words may be separated by something other than spaces
	signs bool // a sign stands between two word bytes
	runs  bool // a letter stands at least three times in a row
	pairs bool // short words stand in a row
}

const (
	minRun      = 3   // equal letters in a row that nobody writes by the rules of spelling
	minPieces   = 4   // pieces in a row that are a word in pieces
	maxPiece    = 2   // bytes of a piece
	ordinary    = 256 // bytes of a text that is taken apart without a place of its own in memory
	manyGaps    = 2   // separators between words that are more than an accident
	hardGap     = "_.:;!?"
	blankGlyph  = '\u2800' // looks like a space, but is none
	noGap, sign = " '", "@$!|+"
)

// What a byte is to the shape of a text.
const (
	solid = 1 << iota // a letter or digit
	gap               // may stand between words instead of a space
	hard              // such a gap that no pattern takes for one
	signs
)

var shapes = func() (table [256]uint8) {
	for i := range 256 {
		c := byte(i)
		switch {
		case kindOf(c)&(letterByte|digitByte) != 0:
			table[i] = solid
		case c > ' ' && c < utf8.RuneSelf && strings.IndexByte(noGap, c) < 0:
			table[i] = gap
			if strings.IndexByte(hardGap, c) >= 0 {
				table[i] |= hard
			}
			if strings.IndexByte(sign, c) >= 0 {
				table[i] |= signs
			}
		}
	}
	return table
}()

func shapeOf(s string) shape {
	var found shape
	run, piece, pieces, gaps := 0, 0, 0, 0
	var last byte // the last byte that was solid, 0 if a space or nothing was behind it
	var between uint8
	for i := 0; i < len(s); i++ {
		c := s[i]
		is := shapes[c]
		switch {
		case is&solid != 0:
			if between != 0 && last != 0 {
				gaps++
				found.gaps = found.gaps || between&hard != 0 || gaps >= manyGaps
				found.signs = found.signs || between&signs != 0
			}
			if c == last && between == 0 {
				if run++; run >= minRun {
					found.runs = true
				}
			} else {
				run = 1
			}
			last, between = c, 0
			piece++
		case is&gap != 0:
			between |= is
			piece++
		default:
			last, between = 0, 0
			if c != ' ' {
				piece++
				continue
			}
			if 0 < piece && piece <= maxPiece {
				pieces++
			} else {
				pieces = 0
			}
			found.pairs = found.pairs || pieces >= minPieces
			piece = 0
		}
	}
	if 0 < piece && piece <= maxPiece && pieces+1 >= minPieces {
		found.pairs = true
	}
	return found
}

// apart returns s with whatever separates words made a space: "make_me.some" is "make me some". Where that makes several
// spaces, as between "make ... some", runs of spaces are made one.
func apart(s string) string {
	var room [ordinary]byte
	b := append(room[:0], s...)[:0] // the room that s takes
	wide, from := false, 0
	for i := 1; i < len(s); i++ {
		if shapes[s[i]]&gap == 0 || shapes[s[i-1]]&solid == 0 {
			continue
		}
		end := i + 1
		for end < len(s) && shapes[s[end]]&gap != 0 {
			end++
		}
		if end < len(s) && shapes[s[end]]&solid != 0 {
			b = append(append(b, s[from:i]...), ' ')
			wide = wide || end > i+1
			from = end
		}
		i = end
	}
	b = append(b, s[from:]...)
	if wide || bytes.Contains(b, []byte("  ")) {
		b = oneSpace(b)
	}
	return string(b)
}

// oneSpace makes runs of spaces one, in place, and leaves none at the ends.
func oneSpace(b []byte) []byte {
	kept := b[:0]
	for _, c := range b {
		if c != ' ' || len(kept) > 0 && kept[len(kept)-1] != ' ' {
			kept = append(kept, c)
		}
	}
	return bytes.TrimSuffix(kept, []byte(" "))
}

// split returns s with signs made separators, which [Skeleton] drops: in "r|a|n" they are no letters.
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
	var room [ordinary]byte
	b := append(room[:0], s...)[:0] // the room that s takes
	for i := 0; i < len(s); {
		end := i + 1
		for end < len(s) && s[end] == s[i] && s[i] < utf8.RuneSelf {
			end++
		}
		n := end - i
		if n >= minRun && kindOf(s[i])&letterByte != 0 {
			n = keep
		}
		b = append(b, s[i:i+n]...)
		i = end
	}
	return string(b)
}

// gather returns s with words of at most [maxPiece] bytes that stand in a row, at least [minPieces], put together:
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

// unseen returns s with everything that leaves the page blank made a space, or "" if there is nothing of the kind:
// an invisible character can be a gap between words as well as a gap within one.
func unseen(s string) string {
	found := false
	for i := 0; i < len(s) && !found; i++ {
		c := s[i]
		found = c >= utf8.RuneSelf || c < '\t' || '\r' < c && c < ' ' || c == 0x7f
	}
	if !found {
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
