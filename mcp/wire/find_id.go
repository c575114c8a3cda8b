package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// An IDFinder finds the id of a request that cannot be read strictly, or is too large to keep, so
// that the client learns which of its requests failed. Write the request's bytes to it, in pieces
// of any size.
type IDFinder struct {
	depth   int // nesting depth; the members of the message are at depth 1
	quoted  bool
	escaped bool
	over    bool   // the message has ended
	part    []byte // the name or value at depth 1 that is being read, at most maxPart bytes
	name    string // name of the value that is being read

	id      jsontext.Value
	ids     int  // number of members with the name "id"
	request bool // the message has a method
	answer  bool // the message has a result or an error
}

// maxPart is one byte more than the longest id. The names of an envelope are shorter in every
// spelling.
const maxPart = MaxID + 1

// ID returns the id. It is nil if there is none, or more than one. It is nil for a response, too:
// the client did not choose that id.
func (f *IDFinder) ID() jsontext.Value {
	if f.ids != 1 || f.answer && !f.request || !f.id.IsValid() || checkID(f.id) != nil {
		return nil
	}
	return f.id
}

// Write reads a piece of the message. It returns no error.
func (f *IDFinder) Write(piece []byte) (int, error) {
	for _, c := range piece {
		if !f.over {
			f.readByte(c)
		}
	}
	return len(piece), nil
}

// readByte reads the next byte of the message.
func (f *IDFinder) readByte(c byte) {
	switch {
	case f.escaped:
		f.escaped = false
	case f.quoted:
		f.escaped, f.quoted = c == '\\', c != '"'
	case c == '"':
		f.quoted = true
	case c == '{' || c == '[':
		f.depth++
		if f.depth == 1 {
			f.over = c == '[' // a batch has no id
			return
		}
	case c == '}' || c == ']':
		f.depth--
		if f.depth <= 0 {
			f.endMember()
			f.over = true
		}
	case f.depth == 1 && c == ':':
		f.beginValue()
		return
	case f.depth == 1 && c == ',':
		f.endMember()
		return
	}
	if f.depth == 1 && len(f.part) < maxPart {
		f.part = append(f.part, c)
	}
}

func (f *IDFinder) beginValue() {
	name, err := Text(bytes.TrimSpace(f.part))
	if err != nil {
		name = ""
	}
	f.name, f.part = name, f.part[:0]
}

func (f *IDFinder) endMember() {
	switch f.name {
	case "id":
		f.id = bytes.Clone(bytes.TrimSpace(f.part))
		f.ids++
	case "method":
		f.request = true
	case "result", "error":
		f.answer = true
	}
	f.name, f.part = "", f.part[:0]
}
