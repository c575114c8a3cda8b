package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	joiners    = "-.:/@+&'’^·․⁄∕∶∙⋅‧．٫٬\u2010\u2011" + numJoiners
	numJoiners = ",*×÷" // only between numbers
	// dots of an address are allowed anywhere in a chunk, asciiDots only between two ASCII word characters: 。 ｡ are dots of a
	// domain name (UTS #46, section 2.3), the others look like one (UTS #39). letterDots are no punctuation by category.
	dots       = ".．․"
	asciiDots  = "。｡۔܁܂・·•‧∙⋅᛫⸱⸳꘎𐄁𐩐" + letterDots
	letterDots = "\ua78f\U0001d16d"
	slashes    = `/\⁄∕∖╱⟋⧵⧸⑊⫽`
	signs      = "-+−±"
	minuses    = "\u02d7\u2796" // beside all dashes (Pd)
	maxPrefix  = 2              // signs and currency symbols before a number
	maxGap     = 3              // characters of white space between chunks that are joined
	unitsClose = "°" + unitsApart
	unitsApart = "%‰‱٪"
	cjkNumbers = "零一二三四五六七八九十百千万萬亿億兆两兩廿卄卅卌皕亖㐅㒃㠪㭍弌弍弎俩倆仨双雙半" +
		"壹壱贰貳貮弐叁叄參参肆伍陆陸柒捌玖拾佰仟"
)

// numberSymbols look like a number, but are not in its category.
var numberSymbols = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x218a, Hi: 0x218b, Stride: 1}, // turned digits
		{Lo: 0x2680, Hi: 0x2685, Stride: 1}, // dice
	},
	R32: []unicode.Range32{
		{Lo: 0x1f000, Hi: 0x1f0ff, Stride: 1}, // mahjong and domino tiles, playing cards
		{Lo: 0x1f10d, Hi: 0x1f10d, Stride: 1}, // circled zero
		{Lo: 0x1f19b, Hi: 0x1f1ac, Stride: 1}, // 3D, 4K, 5.1 …
		{Lo: 0x1f3b1, Hi: 0x1f3b1, Stride: 1}, // billiards: 8
		{Lo: 0x1f4af, Hi: 0x1f4af, Stride: 1}, // 100
		{Lo: 0x1f4c5, Hi: 0x1f4c6, Stride: 1}, // calendars: 17
		{Lo: 0x1f502, Hi: 0x1f502, Stride: 1}, // once more: 1
		{Lo: 0x1f51e, Hi: 0x1f51f, Stride: 1}, // 18, 10
		{Lo: 0x1f522, Hi: 0x1f522, Stride: 1}, // 1234
		{Lo: 0x1f550, Hi: 0x1f567, Stride: 1}, // clocks
		{Lo: 0x1f947, Hi: 0x1f949, Stride: 1}, // medals
	},
}

// A chunk is a run of text inside which evidence never begins or ends; see the package comment.
type chunk struct {
	start, end int
	core       string // without signs, symbols, units and invisible characters
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return (unicode.IsLetter(r) || unicode.IsMark(r) || isNumber(r) || ignorable(r)) &&
		!strings.ContainsRune(letterDots, r)
}

func isNumber(r rune) bool {
	return unicode.IsNumber(r) ||
		r >= utf8.RuneSelf && (strings.ContainsRune(cjkNumbers, r) || unicode.Is(numberSymbols, r))
}

func isASCIIWord(r rune) bool { return r < utf8.RuneSelf && isWord(r) }

// isDot reports whether r, between two characters, can be taken for the dot of an address.
func isDot(before, r, next rune) bool {
	return strings.ContainsRune(dots, r) || isASCIIDot(before, r, next)
}

func isASCIIDot(before, r, next rune) bool {
	return isASCIIWord(before) && isASCIIWord(next) && strings.ContainsRune(asciiDots, r)
}

func isSign(r rune) bool { return strings.ContainsRune(signs, r) || unicode.Is(unicode.Sc, r) }

// isDash reports whether r is a sign if nothing is directly before it: "–5", but not "3–5".
func isDash(r rune) bool { return unicode.Is(unicode.Pd, r) || strings.ContainsRune(minuses, r) }

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
		c.core = withoutIgnorable(s[c.start:c.end])
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

// coreEnd returns where the run of word characters and joiners that begins at i ends.
func coreEnd(s string, i int) int {
	before := rune(0)
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) {
			next, _ := utf8.DecodeRuneInString(s[i+size:])
			joins := strings.ContainsRune(joiners, r) && isWord(next) &&
				(!strings.ContainsRune(numJoiners, r) || isNumber(before) && isNumber(next))
			if !joins && !isASCIIDot(before, r, next) {
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
		behindChunk := start-size == free && free > 0
		if size == 0 || !isSign(r) && (!isDash(r) || behindChunk) {
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
