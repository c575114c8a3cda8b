package wire

import "unicode/utf8"

// Bounds of what is read the quick way, which keeps what it needs on the stack. The decoder reads the rest.
const (
	quickDepth = 32 // of nesting; below [MaxDepth]
	quickNames = 16 // names of one object: each is compared with each
	quickOpen  = 64 // names of all the objects around one place
)

// A quick reads one JSON object in one pass. It takes only what the decoder takes, too, and reads it alike; of what is unusual (an
// escape in a name, a surrogate, many names, deep nesting) and of what is wrong it says nothing but that it did not read it.
type quick struct {
	doc     []byte
	names   [quickOpen]quickSpan // of the objects that are open, the outermost first
	open    int                  // how many of names are in use
	members [quickNames]quickMember
	n       int // how many members the object has
}

type quickSpan struct{ from, to int }

// A quickMember is one of the members of the object that is read: slices of the document. The name is without its quotes.
type quickMember struct{ name, value []byte }

// read reports whether doc is one JSON object, whose members it has then.
func (q *quick) read(doc []byte) bool {
	q.doc = doc
	i := q.blank(0)
	if i >= len(doc) || doc[i] != '{' {
		return false
	}
	end := q.object(i, 0)
	return end > 0 && q.blank(end) == len(doc)
}

// blank is the place of the first byte from i on that is not white space.
func (q *quick) blank(i int) int {
	for i < len(q.doc) && (q.doc[i] == ' ' || q.doc[i] == '\n' || q.doc[i] == '\r' || q.doc[i] == '\t') {
		i++
	}
	return i
}

// is reports whether a byte stands at i.
func (q *quick) is(i int, c byte) bool { return i < len(q.doc) && q.doc[i] == c }

// value is the place behind the value that begins at i, inside of so many others; -1 if it was not read.
func (q *quick) value(i, level int) int {
	if i >= len(q.doc) {
		return -1
	}
	switch c := q.doc[i]; c {
	case '"':
		end, _ := q.text(i)
		return end
	case '{':
		return q.object(i, level)
	case '[':
		return q.array(i, level)
	case 't':
		return q.word(i, "true")
	case 'f':
		return q.word(i, "false")
	case 'n':
		return q.word(i, "null")
	default:
		return q.number(i)
	}
}

// object is value for an object.
func (q *quick) object(i, level int) int {
	first := q.open
	if i = q.blank(i + 1); q.is(i, '}') {
		return i + 1
	}
	for level < quickDepth {
		end, plain := q.text(i)
		if end < 0 || !plain || !q.add(quickSpan{i + 1, end - 1}, first) {
			return -1
		}
		name := q.doc[i+1 : end-1]
		if i = q.blank(end); !q.is(i, ':') {
			return -1
		}
		i = q.blank(i + 1)
		if end = q.value(i, level+1); end < 0 {
			return -1
		}
		if level == 0 {
			q.members[q.n] = quickMember{name, q.doc[i:end:end]}
			q.n++
		}
		i = q.blank(end)
		if q.is(i, '}') {
			q.open = first
			return i + 1
		}
		if !q.is(i, ',') {
			return -1
		}
		i = q.blank(i + 1)
	}
	return -1
}

// add notes a name of an object, whose first name has a place. It is false if the object has the name, or too many.
func (q *quick) add(name quickSpan, first int) bool {
	if q.open == quickOpen || q.open-first == quickNames {
		return false
	}
	for _, other := range q.names[first:q.open] {
		if string(q.doc[other.from:other.to]) == string(q.doc[name.from:name.to]) {
			return false
		}
	}
	q.names[q.open] = name
	q.open++
	return true
}

// array is value for an array.
func (q *quick) array(i, level int) int {
	if i = q.blank(i + 1); q.is(i, ']') {
		return i + 1
	}
	for level < quickDepth {
		if i = q.value(i, level+1); i < 0 {
			return -1
		}
		if i = q.blank(i); q.is(i, ']') {
			return i + 1
		}
		if !q.is(i, ',') {
			return -1
		}
		i = q.blank(i + 1)
	}
	return -1
}

// text is the place behind the string that begins at i, and whether it has no escapes; -1 if it was not read.
func (q *quick) text(i int) (end int, plain bool) {
	if !q.is(i, '"') {
		return -1, false
	}
	plain = true
	for i++; ; {
		i += plainly(q.doc[i:])
		if i >= len(q.doc) {
			return -1, false
		}
		switch c := q.doc[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			if i = q.escape(i + 1); i < 0 {
				return -1, false
			}
		case c < ' ':
			return -1, false
		default:
			r, size := utf8.DecodeRune(q.doc[i:])
			if r == utf8.RuneError && size == 1 {
				return -1, false
			}
			i += size
		}
	}
}

// plainly is with how many bytes that stand for themselves in a string a text begins.
func plainly(doc []byte) int {
	for i, c := range doc {
		if !ordinary[c] {
			return i
		}
	}
	return len(doc)
}

// ordinary are the bytes that stand for themselves in a string.
var ordinary = func() (is [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// escape is the place behind an escape whose backslash is in front of i; -1 if it was not read.
func (q *quick) escape(i int) int {
	if i >= len(q.doc) {
		return -1
	}
	switch q.doc[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+4 >= len(q.doc) || (q.doc[i+1]|' ') == 'd' && q.doc[i+2] > '7' { // a half of a pair: the decoder looks for the other
			return -1
		}
		for _, c := range q.doc[i+1 : i+5] {
			if !digit(c) && ((c|' ') < 'a' || (c|' ') > 'f') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

// word is the place behind a word that begins at i; -1 if it does not.
func (q *quick) word(i int, word string) int {
	if len(q.doc)-i < len(word) || string(q.doc[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// number is value for a number.
func (q *quick) number(i int) int {
	if q.is(i, '-') {
		i++
	}
	from := i
	if i = q.digits(i); i == from || i > from+1 && q.doc[from] == '0' {
		return -1
	}
	if q.is(i, '.') {
		from = i + 1
		if i = q.digits(from); i == from {
			return -1
		}
	}
	if q.is(i, 'e') || q.is(i, 'E') {
		if i++; q.is(i, '-') || q.is(i, '+') {
			i++
		}
		from = i
		if i = q.digits(i); i == from {
			return -1
		}
	}
	return i
}

// digits is the place behind the digits from i on.
func (q *quick) digits(i int) int {
	for i < len(q.doc) && digit(q.doc[i]) {
		i++
	}
	return i
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
