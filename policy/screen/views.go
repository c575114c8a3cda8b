package screen

import (
	"strings"
	"unicode/utf8"
)

// A shape is what in a text gives reason to read it in one more way.
type shape struct {
	gaps  bool // words may be separated by something other than spaces
	signs bool // a sign stands between two word bytes
	runs  bool // a letter stands at least three times in a row
	pairs bool // short words stand in a row
}

const (
	minRun      = 3 // equal letters in a row that nobody writes by the rules of spelling
	minPieces   = 4 // pieces in a row that are a word in pieces
	maxPiece    = 2 // bytes of a piece
	manyGaps    = 2 // separators between words that are more than an accident
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

// apart returns s with whatever separates words made a space: "make_me.some" is "make me some".
func apart(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); {
		if shapes[b[i]]&gap == 0 || i == 0 || shapes[b[i-1]]&solid == 0 {
			i++
			continue
		}
		end := i
		for end < len(b) && shapes[b[end]]&gap != 0 {
			end++
		}
		if end < len(b) && shapes[b[end]]&solid != 0 {
			for ; i < end; i++ {
				b[i] = ' '
			}
		}
		i = end
	}
	return oneSpace(string(b))
}

// oneSpace makes runs of spaces one.
func oneSpace(s string) string {
	if !strings.Contains(s, "  ") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
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
	b := make([]byte, 0, len(s))
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
