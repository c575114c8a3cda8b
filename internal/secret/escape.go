package secret

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// An escape is the escape that a text begins with.
type escape struct {
	char rune // the character that it encodes
	byte bool // char is a byte, not a character
	size int  // its length in bytes; 0 if there is none
}

// decodedLen returns the length in bytes of the character that the escape encodes.
func (e escape) decodedLen() int {
	if e.byte {
		return 1
	}
	return utf8.RuneLen(e.char)
}

func (e escape) appendTo(to []byte) []byte {
	if e.byte {
		return append(to, byte(e.char))
	}
	return utf8.AppendRune(to, e.char)
}

// shortEscapes are the escapes of two bytes and the characters that they encode.
var shortEscapes = [256]rune{
	'"': '"', '\'': '\'', '\\': '\\', '/': '/',
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// readEscape reads the escape that text begins with.
func readEscape(text []byte) escape {
	if len(text) < 2 || text[0] != '\\' {
		return escape{}
	}
	if r := shortEscapes[text[1]]; r != 0 {
		return escape{char: r, size: 2}
	}

	switch text[1] {
	case 'x':
		if r, ok := parseHex(text, 2, 2); ok {
			return escape{char: r, byte: true, size: 4}
		}
	case 'u':
		r, ok := parseHex(text, 2, 4)
		if !ok {
			break
		}
		if utf16.IsSurrogate(r) {
			if len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
				if low, ok := parseHex(text, 8, 4); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					return escape{char: utf16.DecodeRune(r, low), size: 12}
				}
			}
			r = utf8.RuneError
		}
		return escape{char: r, size: 6}
	case 'U':
		if r, ok := parseHex(text, 2, 8); ok && utf8.ValidRune(r) {
			return escape{char: r, size: 10}
		}
	}

	return escape{}
}

// parseHex reads n hexadecimal digits of text.
func parseHex(text []byte, from, n int) (rune, bool) {
	if len(text) < from+n {
		return 0, false
	}
	r, err := strconv.ParseUint(string(text[from:from+n]), 16, 32)
	return rune(r), err == nil
}

// plainPrefix returns the number of bytes of text before its first escape: all, if there is none.
func plainPrefix(text []byte) int {
	for offset := 0; ; offset++ {
		i := bytes.IndexByte(text[offset:], '\\')
		if i < 0 {
			return len(text)
		}
		offset += i
		if readEscape(text[offset:]).size > 0 {
			return offset
		}
	}
}

// unescape returns view with one layer of escapes decoded, in *buf, and whether there were any. If
// not, it returns view. The view may be the result of an earlier call with the same buffer, because
// decoding never grows a text.
func unescape(buf *[]byte, view []byte) ([]byte, bool) {
	plain := plainPrefix(view)
	if plain == len(view) {
		return view, false
	}
	if cap(*buf) < len(view) {
		*buf = make([]byte, 0, len(view))
	}
	out := (*buf)[:0]
	for {
		out = append(out, view[:plain]...)
		view = view[plain:]
		if len(view) == 0 {
			return out, true
		}
		e := readEscape(view)
		out = e.appendTo(out)
		view = view[e.size:]
		plain = plainPrefix(view)
	}
}

// Views returns a text as it is, then with its escapes decoded, then with the escapes of that decoded, and so on. A
// view is valid until the next one.
func Views(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		view, buf := text, []byte(nil)
		for level := 0; yield(view) && level < MaxLevels; level++ {
			var escaped bool
			if view, escaped = unescape(&buf, view); !escaped {
				return
			}
		}
	}
}
