package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	joiners    = "-.:/@+&'’^·⁄∕٫٬\u2010\u2011" + numJoiners
	numJoiners = ",*×÷" // only between numbers
	slashes    = `/\`
	signs      = "-+−±"
	maxPrefix  = 2 // signs and currency symbols before a number
	maxGap     = 3 // characters of white space between chunks that are joined
	unitsClose = "°" + unitsApart
	unitsApart = "%‰‱٪"
	hanNumbers = "零一二三四五六七八九十百千万萬亿億兆两兩"
)

// A chunk is a run of text inside which evidence never begins or ends; see the package comment.
type chunk struct {
	start, end int
	core       string // the text without signs, symbols, units and invisible characters
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || isNumber(r) || isIgnorable(r)
}

func isNumber(r rune) bool {
	return unicode.IsNumber(r) || r >= utf8.RuneSelf && strings.ContainsRune(hanNumbers, r)
}

func isSign(r rune) bool { return strings.ContainsRune(signs, r) || unicode.Is(unicode.Sc, r) }

// splitChunks returns the chunks of s in order.
func splitChunks(s string) []chunk {
	var list []chunk
	free := 0 // the end of the last chunk
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) {
			i += size
			continue
		}
		c := chunk{start: i, end: coreEnd(s, i)}
		c.core = withoutIgnorable(s[c.start:c.end])
		// A number takes the signs before it and the unit behind it into its chunk.
		if first, _ := utf8.DecodeRuneInString(c.core); isNumber(first) {
			c.start = prefixStart(s, free, c.start)
		}
		if last, _ := utf8.DecodeLastRuneInString(c.core); isNumber(last) {
			c.end = unitEnd(s, c.end)
		}
		list = append(list, c)
		i, free = c.end, c.end
	}
	return list
}

// coreEnd returns the end of the run of word characters and joiners that begins at i.
func coreEnd(s string, i int) int {
	previous := rune(0)
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) {
			next, _ := utf8.DecodeRuneInString(s[i+size:])
			betweenNumbers := isNumber(previous) && isNumber(next)
			if !strings.ContainsRune(joiners, r) || !isWord(next) ||
				strings.ContainsRune(numJoiners, r) && !betweenNumbers {
				return i
			}
		}
		previous = r
		i += size
	}
	return i
}

// prefixStart returns the start of the signs before a number. A dash is a sign if nothing is
// directly before it: "–5", but not "3–5".
func prefixStart(s string, free, start int) int {
	for range maxPrefix {
		r, size := utf8.DecodeLastRuneInString(s[free:start])
		behindChunk := start-size == free && free > 0
		if size == 0 || !isSign(r) && (!unicode.Is(unicode.Pd, r) || behindChunk) {
			break
		}
		start -= size
	}
	return start
}

func unitEnd(s string, end int) int {
	r, size := utf8.DecodeRuneInString(s[end:])
	if strings.ContainsRune(unitsClose, r) || unicode.Is(unicode.Sc, r) {
		return end + size
	}
	if unicode.IsSpace(r) {
		unit, more := utf8.DecodeRuneInString(s[end+size:])
		if strings.ContainsRune(unitsApart, unit) {
			return end + size + more
		}
	}
	return end
}
