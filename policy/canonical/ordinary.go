package canonical

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Most documents are ordinary: names of plain ASCII, escapes that the canonical form has too, a few levels. Their canonical
// form is written here in one pass. Whatever is not surely ordinary, and every document that is not strict JSON, is left to the
// decoder, which also has the words for what is wrong. A fuzz test holds the two to each other.

// maxOrdinaryDepth bounds the nesting: where members have to be put in order, what is below them is moved once more.
const maxOrdinaryDepth = 32

// sameEscapes are the characters that stand behind a backslash in the canonical form.
const sameEscapes = `"\bfnrt`

// meaning has what each of sameEscapes stands for.
const meaning = "\"\\\b\f\n\r\t"

// An ordinary reads a document and writes its canonical form. Each of its methods reports whether what it read is ordinary.
type ordinary struct {
	doc  []byte
	from int // what of doc is not written yet begins here
	at   int // and ends here
	out  []byte
}

// whole appends the canonical form of the whole document to out.
func (o *ordinary) whole() bool {
	if !o.value(0) {
		return false
	}
	o.space()
	o.flush()
	return o.at == len(o.doc)
}

// flush writes what was read, as it stands.
func (o *ordinary) flush() {
	o.out = append(o.out, o.doc[o.from:o.at]...)
	o.from = o.at
}

// written is how long the output is with what is not written yet.
func (o *ordinary) written() int { return len(o.out) + o.at - o.from }

// space leaves white space out.
func (o *ordinary) space() {
	if o.at == len(o.doc) || o.doc[o.at] > ' ' {
		return
	}
	o.flush()
	for o.at < len(o.doc) && strings.IndexByte(" \t\r\n", o.doc[o.at]) >= 0 {
		o.at++
	}
	o.from = o.at
}

// next reads over white space and then c, if that comes next.
func (o *ordinary) next(c byte) bool {
	o.space()
	if o.at == len(o.doc) || o.doc[o.at] != c {
		return false
	}
	o.at++
	return true
}

func (o *ordinary) value(depth int) bool {
	o.space()
	if o.at == len(o.doc) {
		return false
	}
	switch o.doc[o.at] {
	case '"':
		return o.text()
	case '{':
		return depth < maxOrdinaryDepth && o.object(depth+1)
	case '[':
		return depth < maxOrdinaryDepth && o.list(depth+1)
	case 't':
		return o.word("true")
	case 'f':
		return o.word("false")
	case 'n':
		return o.word("null")
	}
	return o.number()
}

func (o *ordinary) word(word string) bool {
	end := o.at + len(word)
	if end > len(o.doc) || string(o.doc[o.at:end]) != word {
		return false
	}
	o.at = end
	return true
}

// text reads a string that has one spelling.
func (o *ordinary) text() bool {
	ascii := true
	for i := plainEnd(o.doc, o.at+1); i < len(o.doc); i = plainEnd(o.doc, i) {
		switch c := o.doc[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(o.doc[o.at:i]) {
				return false
			}
			o.at = i + 1
			return true
		case c == '\\':
			if i++; i == len(o.doc) || strings.IndexByte(sameEscapes, o.doc[i]) < 0 {
				return false
			}
		case c < ' ':
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
		i++
	}
	return false
}

// number reads a number: it keeps its literal.
func (o *ordinary) number() bool {
	i := o.at
	if o.doc[i] == '-' {
		i++
	}
	whole := o.digits(i)
	if whole == i || whole > i+1 && o.doc[i] == '0' {
		return false
	}
	i = whole
	if i < len(o.doc) && o.doc[i] == '.' {
		from := i + 1
		if i = o.digits(from); i == from {
			return false
		}
	}
	if i < len(o.doc) && (o.doc[i] == 'e' || o.doc[i] == 'E') {
		from := i + 1
		if from < len(o.doc) && (o.doc[from] == '+' || o.doc[from] == '-') {
			from++
		}
		if i = o.digits(from); i == from {
			return false
		}
	}
	o.at = i
	return true
}

// digits returns the end of the digits that begin at from.
func (o *ordinary) digits(from int) int {
	for from < len(o.doc) && '0' <= o.doc[from] && o.doc[from] <= '9' {
		from++
	}
	return from
}

func (o *ordinary) list(depth int) bool {
	o.at++
	for first := true; !o.next(']'); first = false {
		if !first && !o.next(',') || !o.value(depth) {
			return false
		}
	}
	return true
}

// A member of an object: its name, without quotation marks, and from where to where it stands in the output.
type member struct {
	name     []byte
	from, to int
}

func compare(a, b member) int { return bytes.Compare(a.name, b.name) }

func (o *ordinary) object(depth int) bool {
	o.at++
	var few [8]member
	members, inOrder := few[:0], true
	for !o.next('}') {
		if len(members) > 0 && !o.next(',') {
			return false
		}
		m, ok := o.member(depth)
		if !ok {
			return false
		}
		if n := len(members); n > 0 && compare(members[n-1], m) >= 0 {
			inOrder = false
		}
		members = append(members, m)
	}
	return inOrder || o.reorder(members)
}

// member reads a name and its value. The order of names is that of UTF-16, which for plain ASCII is that of the bytes.
func (o *ordinary) member(depth int) (m member, ok bool) {
	o.space()
	m.from = o.written()
	if o.at == len(o.doc) || o.doc[o.at] != '"' {
		return m, false
	}
	begin := o.at + 1
	end := plainEnd(o.doc, begin)
	if end == len(o.doc) || o.doc[end] != '"' {
		return m, false
	}
	m.name, o.at = o.doc[begin:end], end+1
	ok = o.next(':') && o.value(depth)
	o.space()
	m.to = o.written()
	return m, ok
}

// reorder puts the members that were read last, and a brace behind them, in their order, or reports that a name stands twice.
func (o *ordinary) reorder(members []member) bool {
	o.flush()
	begin := members[0].from
	was := bytes.Clone(o.out[begin:])
	slices.SortFunc(members, compare)
	for i := range members[1:] {
		if compare(members[i], members[i+1]) == 0 {
			return false
		}
	}
	o.out = o.out[:begin]
	for i, m := range members {
		if i > 0 {
			o.out = append(o.out, ',')
		}
		o.out = append(o.out, was[m.from-begin:m.to-begin]...)
	}
	o.out = append(o.out, '}')
	return true
}
