package postgres

import (
	"strings"
	"unicode/utf8"
)

// escape begins the text for a byte that PostgreSQL cannot store: U+0000, and bytes that are not
// UTF-8. It is a noncharacter of Unicode.
const escape = '\uFFFE'

const hexDigits = "0123456789abcdef"

// toText returns s in a form that PostgreSQL can store. Different texts stay different. Hardly any
// text contains such bytes.
func toText(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\uFFFE") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == escape || r == utf8.RuneError && size == 1 {
			for _, c := range []byte(s[i : i+size]) {
				b.WriteRune(escape)
				b.WriteByte(hexDigits[c>>4])
				b.WriteByte(hexDigits[c&0xf])
			}
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// fromText is the inverse of toText. It reports false if toText does not return such a text.
func fromText(s string) (string, bool) {
	if !strings.ContainsRune(s, escape) {
		return s, true
	}
	parts := strings.Split(s, string(escape))
	b := []byte(parts[0])
	for _, part := range parts[1:] {
		if len(part) < 2 {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, part[0]), strings.IndexByte(hexDigits, part[1])
		if high < 0 || low < 0 {
			return "", false
		}
		b = append(append(b, byte(high<<4|low)), part[2:]...)
	}
	return string(b), true
}
