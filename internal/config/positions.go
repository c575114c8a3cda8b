package config

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// positions returns the place in the file of each character of a text, or nil if it is unknown. It follows the
// text through the file as YAML (and JSON) write it: plain, in quotes with escapes, or as a block, over lines that are
// folded.
func (s *source) positions(n *node) []place {
	if n.at.line < 1 || n.at.line > len(s.lines) {
		return nil
	}
	r := &positionReader{src: s, line: n.at.line, row: []rune(s.lines[n.at.line-1]), col: n.at.col - 1}
	if r.col >= len(r.row) {
		return nil
	}
	switch r.style = r.row[r.col]; r.style {
	case '\'', '"':
		r.col++
	case '|', '>':
		r.block(n.text)
	default:
		r.style = 0
	}
	var out []place
	for _, want := range n.text {
		at, ok := r.next(want)
		if !ok {
			return nil
		}
		out = append(out, at)
	}
	return out
}

// positionReader stands at a character of a file.
type positionReader struct {
	src    *source
	style  rune // what the text begins with: ' " | >, or 0 for a plain text
	indent int  // of a block's lines
	line   int  // from 1
	row    []rune
	col    int // from 0
}

// block goes to the first line of a block. Its indent is what its first line with text in it has more than that text.
func (r *positionReader) block(text string) {
	for _, line := range r.src.lines[r.line:] {
		if rest := strings.TrimLeft(line, " "); rest != "" {
			text = strings.TrimLeft(text, "\n")
			r.indent = len(line) - len(rest) - (len(text) - len(strings.TrimLeft(text, " ")))
			break
		}
	}
	r.newline()
}

// newline goes to where the text continues on the next line.
func (r *positionReader) newline() bool {
	if r.line >= len(r.src.lines) {
		return false
	}
	r.row, r.col = []rune(r.src.lines[r.line]), 0
	r.line++
	if r.style == '|' || r.style == '>' {
		r.col = max(0, min(r.indent, len(r.row)))
		return true
	}
	for r.col < len(r.row) && r.row[r.col] == ' ' {
		r.col++
	}
	return true
}

// next returns where the next character of the text stands.
func (r *positionReader) next(want rune) (place, bool) {
	for {
		at := place{r.line, r.col + 1}
		if r.col >= len(r.row) { // a line end is a space, a line end, or nothing
			more := r.newline()
			switch {
			case want == '\n' || want == ' ' && more:
				return at, true
			case !more:
				return at, false
			}
			continue
		}
		got, size := r.read()
		r.col += size
		switch {
		case got == want:
			return at, true
		case got == ' ' && !slices.ContainsFunc(r.row[r.col:], func(c rune) bool { return c != ' ' }): // folded away
		case got == lineJoin:
		default:
			return at, false
		}
	}
}

// lineJoin is what a backslash at the end of a line stands for: nothing.
const lineJoin = -1

// escapes are what YAML has behind a backslash for one character (YAML 1.2, section 5.7).
var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1B, ' ': ' ', '"': '"',
	'/': '/', '\\': '\\', 'N': 0x85, '_': 0xA0, 'L': 0x2028, 'P': 0x2029,
}

// read reads one character with its escape, and how long that is.
func (r *positionReader) read() (rune, int) {
	rest := r.row[r.col:]
	switch {
	case r.style == '\'' && len(rest) > 1 && rest[0] == '\'' && rest[1] == '\'':
		return '\'', 2
	case r.style != '"' || rest[0] != '\\':
		return rest[0], 1
	case len(rest) == 1:
		return lineJoin, 1
	}
	if c, ok := escapes[rest[1]]; ok {
		return c, 2
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]
	c, ok := hexadecimal(rest, digits)
	if !ok {
		return rest[0], 1
	}
	if utf16.IsSurrogate(c) && len(rest) > 8 && rest[6] == '\\' && rest[7] == 'u' {
		if low, ok := hexadecimal(rest[6:], 4); ok {
			return utf16.DecodeRune(c, low), 12
		}
	}
	return c, 2 + digits
}

// hexadecimal reads the digits behind a backslash and its letter.
func hexadecimal(rest []rune, digits int) (rune, bool) {
	if digits == 0 || len(rest) < 2+digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(rest[2:2+digits]), 16, 32)
	return rune(v), err == nil
}
