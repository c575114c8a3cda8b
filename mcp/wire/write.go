package wire

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Quote returns s as a JSON string. Broken UTF-8 becomes U+FFFD.
func Quote(s string) jsontext.Value { return AppendQuote(nil, s) }

// AppendQuote appends [Quote] of s.
func AppendQuote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports U+FFFD
	return b
}

// Set returns the object in doc with a member replaced or, if it is new, added in front; a nil
// value removes it. All other values keep their bytes. An empty doc is an empty object. An error
// means that [Members] does not read doc.
func Set(doc []byte, name string, value []byte) (jsontext.Value, error) {
	if len(doc) == 0 {
		doc = []byte("{}")
	}

	object, others := Object(nil), Object(make([]byte, 0, len(doc)+len(name)+len(value)+4))
	found := false
	err := Members(doc, func(n string, v jsontext.Value) error {
		if n == name {
			found, v = true, value
		}
		if v != nil {
			others.Add(n, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	if !found && value != nil {
		object.Add(name, value)
	}

	object.Append(others)
	return object.Value(), nil
}

// envelope is the size of a response without its id and its result, in bytes.
const envelope = len(`{"jsonrpc":"2.0","id":null,"result":}`)

// Response appends the response to a request. The result's bytes stay as they are.
func Response(b []byte, id jsontext.Value, result []byte) []byte {
	return appendReply(b, id, "result", result)
}

// Failure appends the response to a failed request.
func Failure(b []byte, id jsontext.Value, failed []byte) []byte {
	return appendReply(b, id, "error", failed)
}

func appendReply(b []byte, id jsontext.Value, member string, value []byte) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	b = slices.Grow(b, envelope+len(id)+len(value))
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(append(b, `,"`+member+`":`...), value...)
	return append(b, '}')
}

// ErrorObject returns an error object. Data may be nil.
func ErrorObject(code int64, message string, data []byte) jsontext.Value {
	b := append([]byte(nil), `{"code":`...)
	b = strconv.AppendInt(b, code, 10)
	b = append(b, `,"message":`...)
	b = AppendQuote(b, message)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, '}')
}

// Call appends a request or, with a nil id, a notification. Params may be nil.
func Call(b []byte, id jsontext.Value, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != nil {
		b = append(append(append(b, `"id":`...), id...), ',')
	}
	b = AppendQuote(append(b, `"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// An Edit replaces a value of a document.
type Edit struct {
	At, Length int
	With       []byte
}

// Splice returns the object in doc with members added after its opening brace and values replaced.
// The edits are sorted by position. Every other byte stays.
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

	copied := brace
	for _, e := range edits {
		out = append(append(out, doc[copied:e.At]...), e.With...)
		copied = e.At + e.Length
	}

	return append(out, doc[copied:]...)
}

// Array returns a JSON array.
func Array[T ~[]byte](items []T) jsontext.Value {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// Texts returns a JSON array of strings.
func Texts(texts []string) jsontext.Value {
	var items []jsontext.Value
	for _, s := range texts {
		items = append(items, Quote(s))
	}
	return Array(items)
}

// Single returns an object with one member.
func Single(name string, value []byte) jsontext.Value {
	var b Object
	b.Add(name, value)
	return b.Value()
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

// Append adds the members of another object, whose Value was not called yet.
func (o *Object) Append(members Object) {
	switch {
	case len(members) == 0:
	case len(*o) == 0:
		*o = append(*o, members...)
	default:
		*o = append(append(*o, ','), members[1:]...)
	}
}

// AddIf adds a member if the condition holds.
func (o *Object) AddIf(condition bool, name, value string) {
	if condition {
		o.Add(name, []byte(value))
	}
}

// Value returns the object.
func (o *Object) Value() jsontext.Value {
	if len(*o) == 0 {
		return jsontext.Value(`{}`)
	}
	return append(jsontext.Value(*o), '}')
}
