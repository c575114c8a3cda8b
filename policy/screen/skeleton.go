package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Skeleton returns the letters that folded text looks like: marks are dropped, look-alikes of ASCII
// letters become those letters, digits and signs in words become the letters they stand for (4 @ a, 8 b, 3 e, 6 9 g,
// 1 ! | i, 0 o, 5 $ s, 7 + t), and words written with separators are put together (m-a-l-w-a-r-e, mal.ware,
// m(a)lware, m a l w a r e). Symbols beyond ASCII that look like no letter are separators.
//
// As in UTS #39, skeletons are compared and not displayed: letters that look the same become one letter, so "l"
// becomes "i", "rn" "m" and "vv" "w". Skeleton("malware") is "maiware".
func Skeleton(folded string) string { return letters(join(plainLetters(folded))) }

// mapLetters is Skeleton, but puts no words together.
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

// digit returns the ASCII digit for a decimal digit of any script. The digits of a script are consecutive, from 0 to 9.
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

// mapCapitals replaces capitals that look like another letter than their folded form, and characters that look like
// two letters by the second of these.
func mapCapitals(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := likeCapital[r]; ok {
			return rune(c)
		}
		return r
	}, s)
}

// The kinds of bytes, as bits.
const (
	letterByte = 1 << iota // also each byte beyond ASCII
	digitByte
	signByte  // stands for a letter
	splitByte // may separate the letters of a word
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

const (
	wordByte = letterByte | digitByte | signByte
	sign     = "@$!|+" // ASCII signs that stand for letters
)

// letters replaces digits and signs that stand for letters in each word that has a letter, and makes letters that look
// the same one letter.
func letters(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if kind[s[i]]&wordByte == 0 {
			b = append(b, s[i])
			i++
			continue
		}
		end, all := i, uint8(0)
		for ; end < len(s) && kind[s[end]]&wordByte != 0; end++ {
			all |= kind[s[end]]
		}
		last := i + len(strings.TrimRight(s[i:end], "!+")) // these are punctuation at the end of a word
		for ; all&letterByte != 0 && i < last; i++ {
			b = append(b, leet[s[i]])
		}
		b = append(b, s[i:end]...)
		i = end
	}
	return strings.ReplaceAll(strings.ReplaceAll(string(b), "rn", "m"), "vv", "w")
}

const (
	minLetters = 4  // single letters in a row that are a word
	maxSplit   = 32 // bytes between two letters of a word
)

// join drops separators within words: those between two word bytes, and those, spaces included, in a row of single letters.
func join(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		end := spacedWord(s, i)
		for ; i < end; i++ {
			if kind[s[i]]&wordByte != 0 {
				b = append(b, s[i])
			}
		}
		if i < len(s) {
			if next := behindSeparators(s, i); next > i {
				i = next
				continue
			}
			b = append(b, s[i])
			i++
		}
	}
	return string(b)
}

// behindSeparators returns where the word goes on behind the separators at i, or i if there are none within a word.
func behindSeparators(s string, i int) int {
	if i == 0 || kind[s[i-1]]&wordByte == 0 {
		return i
	}
	end := i
	for end < len(s) && end-i < maxSplit && kind[s[end]]&splitByte != 0 {
		end++
	}
	if end == len(s) || kind[s[end]]&wordByte == 0 {
		return i
	}
	return end
}

// spacedWord returns where the word that begins at i and has spaces between its letters ends, or i if there is none.
func spacedWord(s string, i int) int {
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
	if count < minLetters {
		return i
	}
	return end
}

// isSingle reports whether a word of one ASCII byte begins at i.
func isSingle(s string, i int) bool {
	return s[i] < utf8.RuneSelf && kind[s[i]]&wordByte != 0 && (i+1 == len(s) || kind[s[i+1]]&wordByte == 0)
}

// spaced returns s with words put together that have single spaces between their letters and wider ones around
// them, or "" if there are no such words. Folding loses where the words of "h a c k   t h e m" end.
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
		single := len(piece) > 1
		for i := 0; single && i < len(piece); i++ {
			single = piece[i] == ' ' || kind[piece[i]]&splitByte != 0 || isSingle(piece, i)
		}
		if single {
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
