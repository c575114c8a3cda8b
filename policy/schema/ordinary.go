package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Most calls are ordinary: an object of a few members that are text, whole numbers, true, false or null, whose schemas say no
// more than types, lengths and words. Such a document is judged while it is read, without making anything of it. Only what
// is surely valid is decided here; all else, and every document that is not in canonical form, is left to the validator,
// which also has the words for what is wrong. A fuzz test holds the two to each other.

// ordinary is what an object schema says, as far as it is judged here.
type ordinary struct {
	members  []member // by name
	rows     []row    // what a document costs, by depth
	maxBytes int      // of a number
}

// A member is what the schema says of one.
type member struct {
	name                       string
	required                   bool
	text, whole, boolean, null bool     // what it may be, of what is judged here
	least, most                int      // characters of a text
	words                      []string // the texts that it may be; nil: all
}

const noMost = 1 << 30 // more than any document has

// newOrdinary returns nil if the schema of the whole document says anything that is not judged here.
func newOrdinary(n *node, rows []row, lim Limits) *ordinary {
	if !saysOnly(n, "Types", "Required", "Properties", "AdditionalProperties") || n.AdditionalProperties != false {
		return nil
	}
	if n.Types != nil && !n.Types.IsEmpty() && !slices.Contains(n.Types.ToStrings(), "object") {
		return nil
	}
	o := &ordinary{rows: rows, maxBytes: min(lim.NumberBytes, plainNumberBytes)}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		o.members = append(o.members, newMember(name, n.Properties[name], slices.Contains(n.Required, name)))
	}
	for _, name := range n.Required {
		if n.Properties[name] == nil {
			return nil // no document has it
		}
	}
	return o
}

// newMember returns a member that may be nothing if its schema says anything that is not judged here.
func newMember(name string, n *node, required bool) member {
	m := member{name: name, required: required, most: noMost}
	if !saysOnly(n, "Types", "MinLength", "MaxLength", "Enum") {
		return m
	}
	if n.MinLength != nil {
		m.least = *n.MinLength
	}
	if n.MaxLength != nil {
		m.most = *n.MaxLength
	}
	is := func(types ...string) bool {
		return n.Types == nil || n.Types.IsEmpty() || slices.ContainsFunc(types, func(t string) bool { return slices.Contains(n.Types.ToStrings(), t) })
	}
	m.text = is("string")
	if n.Enum == nil {
		m.whole, m.boolean, m.null = is("number", "integer"), is("boolean"), is("null")
		return m
	}
	m.words = []string{}
	for _, v := range n.Enum.Values {
		if word, ok := v.(string); ok {
			m.words = append(m.words, word)
		}
	}
	return m
}

// speechless are the fields of a node that say nothing about documents.
var speechless = []string{
	"DraftVersion", "Location", "ID", "Anchor", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
}

// saysOnly reports whether a node has nothing to say but in these fields. What a later version of the validator adds counts
// as something.
func saysOnly(n *node, fields ...string) bool {
	v := reflect.ValueOf(*n)
	for i, f := range reflect.VisibleFields(v.Type()) {
		if !f.IsExported() || slices.Contains(fields, f.Name) || slices.Contains(speechless, f.Name) {
			continue
		}
		empty := v.Field(i).IsZero()
		if k := f.Type.Kind(); k == reflect.Map || k == reflect.Slice {
			empty = v.Field(i).Len() == 0
		}
		if !empty {
			return false
		}
	}
	return true
}

// A reader reads a document from one end to the other.
type reader struct {
	doc []byte
	at  int
}

// next reads c, if that comes next.
func (r *reader) next(c byte) bool {
	if r.at == len(r.doc) || r.doc[r.at] != c {
		return false
	}
	r.at++
	return true
}

// admits reports whether doc is surely valid, and surely within the budget.
func (o *ordinary) admits(doc []byte, budget uint64) bool {
	if o == nil {
		return false
	}
	var tally [2]level
	tally[0].values = 1
	r, rest, last := reader{doc: doc}, o.members, []byte(nil)
	if !r.next('{') {
		return false
	}
	for first := true; !r.next('}'); first = false {
		if !first && !r.next(',') {
			return false
		}
		name, ok := r.name()
		if !ok || !first && string(last) >= string(name) || !r.next(':') {
			return false
		}
		last = name
		for len(rest) > 0 && rest[0].name < string(name) && !rest[0].required {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].name != string(name) {
			return false
		}
		size, ok := r.value(&rest[0], o.maxBytes)
		if !ok {
			return false
		}
		rest = rest[1:]
		tally[0].names += len(name)
		tally[1].values++
		tally[1].text += len(name) + size
	}
	if r.at < len(doc) || slices.ContainsFunc(rest, func(m member) bool { return m.required }) {
		return false
	}
	m := meter{budget}
	return m.tally(o.rows, tally[:])
}

// name reads a name of plain ASCII.
func (r *reader) name() ([]byte, bool) {
	text, escapes, ascii, ok := r.text()
	return text, ok && escapes == 0 && ascii
}

// text reads a string and returns what stands between its quotation marks, with how many escapes, and whether it is ASCII.
func (r *reader) text() (text []byte, escapes int, ascii, ok bool) {
	if !r.next('"') {
		return nil, 0, false, false
	}
	all := byte(0)
	for i := r.at; i < len(r.doc); i++ {
		c := r.doc[i]
		all |= c
		switch {
		case c == '"':
			text, r.at = r.doc[r.at:i], i+1
			return text, escapes, all < utf8.RuneSelf, all < utf8.RuneSelf || utf8.Valid(text)
		case c < ' ':
			return nil, 0, false, false
		case c == '\\':
			escapes++
			if i++; i == len(r.doc) || strings.IndexByte(`"\bfnrt`, r.doc[i]) < 0 {
				return nil, 0, false, false
			}
		}
	}
	return nil, 0, false, false
}

// value reads a value that m may be, and returns how many bytes of text it has.
func (r *reader) value(m *member, maxNumber int) (size int, ok bool) {
	if r.at == len(r.doc) {
		return 0, false
	}
	switch r.doc[r.at] {
	case '"':
		text, escapes, ascii, ok := r.text()
		characters := len(text) - escapes
		if !ascii {
			characters = utf8.RuneCount(text) - escapes
		}
		fits := m.text && m.least <= characters && characters <= m.most
		if m.words != nil {
			fits = fits && escapes == 0 && slices.Contains(m.words, string(text))
		}
		return len(text) - escapes, ok && fits
	case 't':
		return 0, m.boolean && r.word("true")
	case 'f':
		return 0, m.boolean && r.word("false")
	case 'n':
		return 0, m.null && r.word("null")
	}
	return 0, m.whole && r.number(maxNumber)
}

func (r *reader) word(word string) bool {
	end := r.at + len(word)
	if end > len(r.doc) || string(r.doc[r.at:end]) != word {
		return false
	}
	r.at = end
	return true
}

// number reads a whole number of at most maxBytes bytes.
func (r *reader) number(maxBytes int) bool {
	from := r.at
	r.next('-')
	digits := r.at
	for r.at < len(r.doc) && '0' <= r.doc[r.at] && r.doc[r.at] <= '9' {
		r.at++
	}
	n := r.at - digits
	return n > 0 && (n == 1 || r.doc[digits] != '0') && r.at-from <= maxBytes
}
