package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Members calls visit for each member of the one JSON object in doc, in order, with a slice of doc as the value. Unless the
// options say otherwise, duplicate names at any depth and broken UTF-8 are errors; anything but an object and text behind it
// always are. An error is returned after the members before it were visited.
func Members(doc []byte, visit func(name string, value jsontext.Value) error, options ...jsontext.Options) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), options...)
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return err
		}
		return errors.New("it is not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		if err := visit(text, doc[end-int64(len(value)):end:end]); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is text behind the JSON object")
		}
		return err
	}
	return nil
}

// Member is the value of a member of the object in doc; nil if there is none, or doc is not an object that [Members]
// reads.
func Member(doc []byte, name string) (value jsontext.Value) {
	if len(doc) == 0 {
		return nil
	}
	err := Members(doc, func(n string, v jsontext.Value) error {
		if n == name {
			value = v
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return value
}

// Text decodes a JSON string.
func Text(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("it is not a string")
	}
	if i := bytes.IndexByte(value, '\\'); i < 0 && len(value) >= 2 {
		return string(value[1 : len(value)-1]), nil
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err
}

// Quote is s as a JSON string. Broken UTF-8 becomes U+FFFD.
func Quote(s string) jsontext.Value { return AppendQuote(nil, s) }

// AppendQuote appends [Quote] of s.
func AppendQuote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error says that U+FFFD was put in
	return b
}

// Set returns the object in doc with the member's value replaced, or with the member added in front; a nil value takes
// it out. Every other byte inside the members' values stays as it was. A nil or empty doc is an empty object. The error
// says that doc is no object that [Members] reads.
func Set(doc []byte, name string, value []byte) (jsontext.Value, error) {
	if len(doc) == 0 {
		doc = []byte("{}")
	}
	out := append(make([]byte, 0, len(doc)+len(name)+len(value)+4), '{')
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = AppendQuote(out, name)
		out = append(append(out, ':'), value...)
	}
	found := false
	var rest []func()
	err := Members(doc, func(n string, v jsontext.Value) error {
		if n == name {
			found, v = true, value
			if value == nil {
				return nil
			}
		}
		rest = append(rest, func() { put(n, v) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found && value != nil {
		put(name, value)
	}
	for _, p := range rest {
		p()
	}
	return append(out, '}'), nil
}

// envelope is room for what an answer has around its id and its result.
const envelope = len(`{"jsonrpc":"2.0","id":null,"result":}`)

// Response appends the answer to a request: its result, spliced in as it is.
func Response(b []byte, id jsontext.Value, result []byte) []byte {
	b = slices.Grow(b, envelope+len(id)+len(result))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, orNull(id)...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// Failure appends the answer to a request that failed with an error object that came from elsewhere.
func Failure(b []byte, id jsontext.Value, failed []byte) []byte {
	b = slices.Grow(b, envelope+len(id)+len(failed))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, orNull(id)...)
	b = append(b, `,"error":`...)
	b = append(b, failed...)
	return append(b, '}')
}

// ErrorObject is the error object of a failed request. Data may be nil.
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

// Call appends a request, or, with a nil id, a notification. Nil params are left out.
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

func orNull(id jsontext.Value) []byte {
	if id == nil {
		return []byte("null")
	}
	return id
}

// A Piece is one member of an object.
type Piece struct {
	Name  string
	Value jsontext.Value // a slice of the document
	At    int            // where Value begins in the document
	Whole []byte         // name and value, as they are in the document
}

// Each calls visit for each member of the object in doc, in order. It is for documents that are known to be JSON: names may come twice and
// UTF-8 may be broken, because results of servers pass unchanged. It reports false if doc is not such an object; the members before the
// fault were visited.
func Each(doc []byte, visit func(Piece)) bool {
	dec := lenient(doc)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return false
	}
	for dec.PeekKind() != '}' {
		name, start, err := nextValue(dec, doc)
		if err != nil {
			return false
		}
		var p Piece
		if p.Value, p.At, err = nextValue(dec, doc); err != nil {
			return false
		}
		p.Name, _ = Text(name) // broken UTF-8 stays
		p.Whole = doc[start : p.At+len(p.Value) : p.At+len(p.Value)]
		visit(p)
	}
	return true
}

// Items calls visit for each element of the array in doc, as [Each] does for members.
func Items(doc []byte, visit func(item jsontext.Value, at int)) bool {
	dec := lenient(doc)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
		return false
	}
	for dec.PeekKind() != ']' {
		item, at, err := nextValue(dec, doc)
		if err != nil {
			return false
		}
		visit(item, at)
	}
	return true
}

func lenient(doc []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// nextValue reads a value and returns it as a slice of doc.
func nextValue(dec *jsontext.Decoder, doc []byte) (value jsontext.Value, at int, err error) {
	read, err := dec.ReadValue()
	if err != nil {
		return nil, 0, err
	}
	end := int(dec.InputOffset())
	at = end - len(read)
	return doc[at:end:end], at, nil
}

// TextMember is a string member of an object; empty if there is none. It reads what [Each] reads.
func TextMember(doc []byte, member string) (text string) {
	Each(doc, func(p Piece) {
		if p.Name == member {
			text, _ = Text(p.Value)
		}
	})
	return text
}

// NonNull is a value, or nil for null.
func NonNull(value jsontext.Value) jsontext.Value {
	if value.Kind() == 'n' {
		return nil
	}
	return value
}
