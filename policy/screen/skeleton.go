package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Skeleton returns what folded text looks like when nobody looks closely: marks are dropped, look-alikes of ASCII
// letters become those letters, digits and signs in words become the letters they stand for (4 @ a, 8 b, 3 e, 6 9 g,
// 1 ! | i, 0 o, 5 $ s, 7 + t), and words that are spelled with separators are put together (m-a-l-w-a-r-e, mal.ware,
// m(a)lware, m a l w a r e). Symbols beyond ASCII that look like no letter are separators.
//
// As in UTS #39 a skeleton is for comparing, not for reading: what cannot be told apart becomes one letter, so "l"
// becomes "i", "rn" "m" and "vv" "w". Skeleton("malware") is "maiware".
func Skeleton(folded string) string { return letters(join(plainLetters(folded))) }

// mapLetters is Skeleton without putting words together.
func mapLetters(folded string) string { return letters(plainLetters(folded)) }

// plainLetters drops marks and replaces look-alikes beyond ASCII.
func plainLetters(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range norm.NFD.String(s) {
		if c, ok := lookalike(r); ok {
			b.WriteByte(c)
			continue
		}
		switch {
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r):
		case r == 'æ':
			b.WriteString("ae")
		case r == 'œ':
			b.WriteString("oe")
		case unicode.Is(unicode.Pd, r), r == '·', r == '•', r >= utf8.RuneSelf && unicode.IsSymbol(r):
			b.WriteByte('-')
		case r >= utf8.RuneSelf && unicode.Is(unicode.Nd, r):
			b.WriteByte(digit(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// digit returns the ASCII digit for a decimal digit of any script. Those of one script follow each other from 0 to 9.
func digit(r rune) byte {
	for _, row := range unicode.Nd.R16 {
		if rune(row.Lo) <= r && r <= rune(row.Hi) {
			return '0' + byte((r-rune(row.Lo))%10)
		}
	}
	for _, row := range unicode.Nd.R32 {
		if rune(row.Lo) <= r && r <= rune(row.Hi) {
			return '0' + byte((r-rune(row.Lo))%10)
		}
	}
	return '0'
}

// mapCapitals replaces capitals whose folded form looks otherwise, and what looks like two letters by the second.
func mapCapitals(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := likeCapital[r]; ok {
			return rune(c)
		}
		return r
	}, s)
}

// What a byte can be in a word.
const (
	letterByte = 1 << iota // also each byte beyond ASCII
	digitByte
	signByte  // stands for a letter
	splitByte // separates the letters of a spelled word
)

var (
	kind [256]uint8
	leet [256]byte // the letter that a byte stands for in a word
)

func init() {
	for i := range 256 {
		leet[i] = byte(i)
		kind[i] = kindOf(byte(i))
	}
	for _, row := range []string{"a4@", "b8", "e3", "g69", "i1!|l", "o0", "s5$", "t7+"} {
		for _, c := range []byte(row[1:]) {
			leet[c] = row[0]
		}
	}
}

func kindOf(c byte) uint8 {
	switch {
	case 'a' <= c && c <= 'z', c >= utf8.RuneSelf:
		return letterByte
	case '0' <= c && c <= '9':
		return digitByte
	case strings.IndexByte(sign, c) >= 0:
		return signByte
	case ' ' < c && c < utf8.RuneSelf && (c < 'A' || c > 'Z'):
		return splitByte
	}
	return 0
}

const wordByte = letterByte | digitByte | signByte

// letters replaces what stands for letters in each word that has a letter, and makes one of what cannot be told apart.
func letters(s string) string {
	all, stands, pairs, last := uint8(0), false, false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		all |= kind[c]
		stands = stands || leet[c] != c
		pairs = pairs || last == 'r' && c == 'n' || last == 'v' && c == 'v'
		last = c
	}
	if stands {
		s = standing(s, all&(digitByte|signByte) == 0) // makes neither r, n nor v
	}
	if pairs {
		s = digraphs(s)
	}
	return s
}

// standing replaces what stands for letters in each word that has a letter. Where there are no digits and signs, every
// word has one.
func standing(s string, everywhere bool) string {
	var room [ordinary]byte
	b := append(room[:0], s...)
	if everywhere {
		for i, c := range b {
			b[i] = leet[c]
		}
		return string(b)
	}
	for i := 0; i < len(b); {
		end, all := i, uint8(0)
		for ; end < len(b) && kind[b[end]]&wordByte != 0; end++ {
			all |= kind[b[end]]
		}
		last := end // "!" and "+" at the end of a word are punctuation
		for last > i && (b[last-1] == '!' || b[last-1] == '+') {
			last--
		}
		for ; all&letterByte != 0 && i < last; i++ {
			b[i] = leet[b[i]]
		}
		i = end + 1
	}
	return string(b)
}

// digraphs makes one letter of two that look like it.
func digraphs(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "rn", "m"), "vv", "w")
}

const (
	minSpelled = 4  // single letters in a row that are a spelled word
	maxSplit   = 32 // bytes between two letters of a spelled word
)

// join puts words together again that are spelled with separators: separators between two word bytes go, and so does
// what separates a row of single letters.
func join(s string) string {
	if !splits(s) {
		return s
	}
	var room [ordinary]byte
	b := append(room[:0], s...)[:0] // the room that s takes
	for i := 0; i < len(s); {
		from := i
		if kind[s[i]]&wordByte != 0 {
			if isSingle(s, i) {
				for end := spelled(s, i); i < end; i++ {
					if kind[s[i]]&wordByte != 0 {
						b = append(b, s[i])
					}
				}
			}
			if i > from {
				continue
			}
			for i < len(s) && kind[s[i]]&wordByte != 0 {
				i++
			}
			b = append(b, s[from:i]...)
			continue
		}
		for i < len(s) && i-from < maxSplit && kind[s[i]]&splitByte != 0 {
			i++
		}
		switch {
		case i == from: // a space
			i++
		case from > 0 && kind[s[from-1]]&wordByte != 0 && i < len(s) && kind[s[i]]&wordByte != 0:
			continue // separators within a word
		}
		b = append(b, s[from:i]...)
	}
	return string(b)
}

// splits reports whether s may have anything to join: a separator, or two single letters in a row.
func splits(s string) bool {
	for i := 0; i < len(s); i++ {
		if kind[s[i]]&splitByte != 0 || s[i] == ' ' && i >= 2 && i+2 < len(s) && s[i-2] == ' ' && s[i+2] == ' ' {
			return true
		}
	}
	return false
}

// spelled returns where the word that is spelled with spaces and begins at i ends, or i if there is none.
func spelled(s string, i int) int {
	if i > 0 && kind[s[i-1]]&wordByte != 0 || i > 1 && s[i-1] == '\'' && kind[s[i-2]]&wordByte != 0 {
		return i
	}
	count, end := 0, i
	for at := i; at < len(s) && isSingle(s, at); {
		count++
		at++
		end = at
		spaces := 0
		for at < len(s) && at-end < maxSplit && (s[at] == ' ' || kind[s[at]]&splitByte != 0) {
			if s[at] == ' ' {
				spaces++
			}
			at++
		}
		if spaces == 0 {
			break
		}
	}
	if count < minSpelled {
		return i
	}
	return end
}

// isSingle reports whether a word of one ASCII byte begins at i.
func isSingle(s string, i int) bool {
	return s[i] < utf8.RuneSelf && kind[s[i]]&wordByte != 0 && (i+1 == len(s) || kind[s[i+1]]&wordByte == 0)
}

// spaced returns s with words put together that are spelled with single spaces and stand apart by wider ones, or ""
// if there are no such words: after folding, "h a c k   t h e m" has lost where its words end.
func spaced(s string) string {
	if !isASCII(s) {
		s = strings.Map(func(r rune) rune {
			if isSpace(r) {
				return ' '
			}
			return r
		}, s)
	}
	if !strings.Contains(s, "  ") {
		return ""
	}
	var words []string
	any := false
	for piece := range strings.SplitSeq(s, "  ") {
		piece = plainLetters(Fold(piece))
		spelled := len(piece) > 1
		for i := 0; spelled && i < len(piece); i++ {
			spelled = piece[i] == ' ' || kind[piece[i]]&splitByte != 0 || isSingle(piece, i)
		}
		if spelled {
			any = true
			piece = strings.ReplaceAll(piece, " ", "")
		}
		words = append(words, piece)
	}
	if !any {
		return ""
	}
	return Fold(strings.Join(words, " "))
}
