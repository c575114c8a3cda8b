package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// An Edit replaces a value of a document.
type Edit struct {
	At, Length int
	With       []byte
}

// Splice returns the object in doc with members added behind its brace and values replaced, in the order of their places. Every other byte
// stays.
func Splice(doc []byte, front [][]byte, edits []Edit) jsontext.Value {
	if len(front) == 0 && len(edits) == 0 {
		return doc
	}
	brace := bytes.IndexByte(doc, '{') + 1
	size := len(doc)
	for _, f := range front {
		size += len(f) + 1
	}
	for _, e := range edits {
		size += len(e.With) - e.Length
	}
	out := append(make([]byte, 0, size), doc[:brace]...)
	empty := bytes.HasPrefix(bytes.TrimLeft(doc[brace:], " \t\r\n"), []byte("}"))
	for i, f := range front {
		out = append(out, f...)
		if !empty || i < len(front)-1 {
			out = append(out, ',')
		}
	}
	from := brace
	for _, e := range edits {
		out = append(append(out, doc[from:e.At]...), e.With...)
		from = e.At + e.Length
	}
	return append(out, doc[from:]...)
}

// An Object is a JSON object being written.
type Object []byte

// Add adds a member.
func (o *Object) Add(name string, value []byte) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(AppendQuote(*o, name), ':'), value...)
}

// AddIf adds a member if yes is true.
func (o *Object) AddIf(yes bool, name, value string) {
	if yes {
		o.Add(name, []byte(value))
	}
}

// Done returns the object.
func (o *Object) Done() jsontext.Value {
	if len(*o) == 0 {
		return jsontext.Value(`{}`)
	}
	return append(jsontext.Value(*o), '}')
}
