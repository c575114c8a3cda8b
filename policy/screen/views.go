package screen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// viewsOf returns the views of t, each once.
func viewsOf(t, folded string) []string {
	plain := folded
	if !isASCII(t) {
		plain = plainLetters(Fold(mapCapitals(t)))
	}
	candidates := []string{folded, replaceLeet(plain), replaceLeet(joinSplit(plain))}
	if h := decodeHidden(t); h != "" {
		candidates = append(candidates, viewsOf(h, Fold(h))...) // h is ASCII, and so hides no further text
	}

	var once []string
	for _, view := range candidates {
		if !slices.Contains(once, view) {
			once = append(once, view)
		}
	}
	return once
}

// Skeleton returns the letters that folded text looks like. As in UTS #39, skeletons are compared
// and not displayed: letters that look the same become one letter, so "l" becomes "i", "rn" "m" and
// "vv" "w". Skeleton("mal-ware") is "maiware".
func Skeleton(folded string) string {
	return strings.NewReplacer("l", "i", "rn", "m", "vv", "w").Replace(replaceLeet(joinSplit(plainLetters(folded))))
}

// plainLetters drops marks and replaces look-alikes beyond ASCII.
func plainLetters(s string) string {
	if isASCII(s) {
		return s
	}

	var b strings.Builder
	b.Grow(len(s))

	for _, r := range norm.NFD.String(s) {
		if c, ok := letterLike(r); ok {
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
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

const signs = "@$!|+" // ASCII signs that stand for letters in a word

// likeASCII are the digits and signs that stand for a letter, behind the letter.
var likeASCII = [...]string{"a4@", "b8", "e3", "g69", "i1!", "l|", "o0", "s5$", "t7+"}

var leet = func() (leet [256]byte) {
	for i := range leet {
		leet[i] = byte(i)
	}
	for _, row := range likeASCII {
		for _, c := range []byte(row[1:]) {
			leet[c] = row[0]
		}
	}
	return leet
}()

// isLetter reports whether c is a small letter or part of a character beyond ASCII.
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || c >= utf8.RuneSelf }

func isWord(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || strings.IndexByte(signs, c) >= 0
}

// replaceLeet replaces digits and signs that stand for letters in each word that has a letter.
func replaceLeet(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); i++ {
		end, hasLetter := i, false
		for ; end < len(b) && isWord(b[end]); end++ {
			hasLetter = hasLetter || isLetter(b[end])
		}
		last := i + len(strings.TrimRight(s[i:end], "!+")) // these are punctuation at the end of a word
		for ; hasLetter && i < last; i++ {
			b[i] = leet[b[i]]
		}
		i = end
	}
	return string(b)
}

const maxSplit = 32 // bytes between two letters of a word

// joinSplit drops separators within words: signs that are not spaces, between two word bytes.
func joinSplit(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if i > 0 && isWord(s[i-1]) {
			end := i
			for end < len(s) && end-i < maxSplit && s[end] > ' ' && !isWord(s[end]) {
				end++
			}
			if end > i && end < len(s) && isWord(s[end]) {
				i = end
			}
		}
		b = append(b, s[i])
		i++
	}
	return string(b)
}

// decodeHidden returns the ASCII that is encoded in tag characters (U+E0020 to U+E007E) and in
// variation selectors taken as bytes (U+FE00 to U+FE0F are 0 to 15, U+E0100 to U+E01EF 16 to 255).
// A model reads this text and a person does not see it.
func decodeHidden(s string) string {
	var b []byte
	for _, r := range s {
		switch {
		case 0xE0020 <= r && r <= 0xE007E:
			b = append(b, byte(r-0xE0000))
		case 0xE0110 <= r && r <= 0xE016E: // the printable ones of the second kind
			b = append(b, byte(r-0xE0100+16))
		}
	}
	return string(b)
}
