package canonical

import "bytes"

// Outline returns how many values doc has, with itself, its members and its elements at every
// depth, and how deep it nests. It counts characters outside of strings, so it needs no memory and
// can run before any decoder. For a document that is not JSON, the figures mean nothing.
func Outline(doc []byte) (values, depth int) {
	// Last is the last character outside of strings that is no white space.
	level, last := 0, byte(0)
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch c {
		case ' ', '\n', '\r', '\t':
			continue
		case '"':
			i = stringEnd(doc, i)
		case ',':
			values++
		case '{', '[':
			values++ // its first member or element
			level++
			depth = max(depth, level)
		case '}', ']':
			if last == '{' || last == '[' {
				values--
			}
			level--
		}

		last = c
	}
	return values + 1, depth
}

// stringEnd returns the place of the quote that ends the string at start, or the length of doc. It
// looks for the quote, and then for a backslash before it, because most strings have none.
func stringEnd(doc []byte, start int) int {
	quote := start
	for i := start + 1; ; {
		if quote < i { // the last one found was escaped
			next := bytes.IndexByte(doc[min(i, len(doc)):], '"')
			if next < 0 {
				return len(doc)
			}
			quote = i + next
		}
		escape := bytes.IndexByte(doc[i:quote], '\\')
		if escape < 0 {
			return quote
		}
		i += escape + len(`\"`)
	}
}
