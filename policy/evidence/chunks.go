package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	joiners    = "-.:/@+&'’,"
	signs      = "-+−±"
	maxPrefix  = 2 // signs and currency symbols before a number
	maxGap     = 3 // characters of white space between chunks that are joined
	unitsClose = "%‰°"
	unitsApart = "%‰"
)

// A chunk is a run of text that evidence is never cut inside of; see the package comment.
type chunk struct {
	start, end int
	core       string // without signs, symbols and units
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)
}

func isSign(r rune) bool { return strings.ContainsRune(signs, r) || unicode.Is(unicode.Sc, r) }

// chunks returns the chunks of s in order.
func chunks(s string) []chunk {
	var list []chunk
	free := 0 // where the last chunk ended
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) {
			i += size
			continue
		}
		c := chunk{start: i, end: coreEnd(s, i)}
		c.core = s[c.start:c.end]
		if unicode.IsNumber(r) {
			c.start = prefixStart(s, free, c.start)
		}
		if last, _ := utf8.DecodeLastRuneInString(c.core); unicode.IsNumber(last) {
			c.end = unitEnd(s, c.end)
		}
		list = append(list, c)
		i, free = c.end, c.end
	}
	return list
}

// coreEnd returns where the run of word characters and joiners that begins at i ends.
func coreEnd(s string, i int) int {
	before := rune(0)
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) {
			next, _ := utf8.DecodeRuneInString(s[i+size:])
			joins := strings.ContainsRune(joiners, r) && isWord(next) &&
				(r != ',' || unicode.IsNumber(before) && unicode.IsNumber(next))
			if !joins {
				return i
			}
		}
		before = r
		i += size
	}
	return i
}

func prefixStart(s string, free, start int) int {
	for range maxPrefix {
		r, size := utf8.DecodeLastRuneInString(s[free:start])
		if size == 0 || !isSign(r) {
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
