package fsm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// legibleText replaces characters that a picture cannot show or XML forbids: control, format and
// bidi characters and broken UTF-8.
func legibleText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// wrapText breaks text into at most most lines of width characters; what does not fit ends in an
// ellipsis.
func wrapText(s string, width, most int) []string {
	var lines []string
	for _, word := range strings.Fields(legibleText(s)) {
		last := len(lines) - 1
		switch {
		case last >= 0 && utf8.RuneCountInString(lines[last]+word) < width:
			lines[last] += " " + word
		case last+1 < most:
			lines = append(lines, shorten(word, width))
		default:
			lines[last] += "…"
			return lines
		}
	}
	return lines
}

// shorten cuts text to width characters, the last one an ellipsis.
func shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}
