package evidence

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// blanks are removed from both ends of a line, bullet or cell.
const blanks = " \t\r"

// maxMarkerDigits bounds the number before a list item, as CommonMark does.
const maxMarkerDigits = 9

// partsOf yields the whole parts of a value, each with its offset: every line, the text of a list
// item without its marker, and every cell of a table row. The package comment defines them.
func partsOf(value string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		offset := 0
		for line := range strings.SplitSeq(value, "\n") {
			start, text := trimPart(offset, line)
			offset += len(line) + 1
			if !yield(start, text) {
				return
			}
			if n := markerLength(text); n > 0 && !yield(trimPart(start+n, text[n:])) {
				return
			}
			if !yieldCells(start, text, yield) {
				return
			}
		}
	}
}

// trimPart returns text, which is at offset at, without the blanks around it, and its new offset.
func trimPart(at int, text string) (int, string) {
	right := strings.TrimRight(text, blanks)
	left := strings.TrimLeft(right, blanks)
	return at + len(right) - len(left), left
}

// markerLength returns the length of the list marker, with the blank behind it, that a line begins
// with, or 0.
func markerLength(line string) int {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	mark, size := utf8.DecodeRuneInString(line[digits:])
	bullet := digits == 0 && strings.ContainsRune("-*+•", mark)
	number := 0 < digits && digits <= maxMarkerDigits && (mark == '.' || mark == ')')
	n := digits + size
	if !bullet && !number || n == len(line) || line[n] != ' ' && line[n] != '\t' {
		return 0
	}
	return n + 1
}

// yieldCells yields the cells of a table row, which begins and ends with a bar. A bar behind a
// backslash is text.
func yieldCells(at int, line string, yield func(int, string) bool) bool {
	if !strings.HasPrefix(line, "|") {
		return true
	}
	var bars []int
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			bars = append(bars, i)
		}
	}
	// A line that does not end with a bar is no row of a table.
	if bars[len(bars)-1] != len(line)-1 {
		return true
	}
	for i := 1; i < len(bars); i++ {
		if !yield(trimPart(at+bars[i-1]+1, line[bars[i-1]+1:bars[i]])) {
			return false
		}
	}
	return true
}
