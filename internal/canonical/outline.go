package canonical

// Outline returns how many values doc has, with itself, its members and its elements at every
// depth, and how deep it nests. It counts characters outside of strings, so it needs no memory and
// can run before any decoder. For a document that is not JSON, the figures mean nothing.
func Outline(doc []byte) (values, depth int) {
	// Last is the last character outside of strings that is no white space.
	level, inString, last := 0, false, byte(0)
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch {
		case inString && c == '\\':
			i++
			continue
		case c == '"':
			inString = !inString
		case inString || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			continue
		case c == ',':
			values++
		case c == '{' || c == '[':
			values++ // its first member or element
			level++
			depth = max(depth, level)
		case c == '}' || c == ']':
			if last == '{' || last == '[' {
				values--
			}
			level--
		}

		last = c
	}
	return values + 1, depth
}
