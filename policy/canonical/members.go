package canonical

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of an object in canonical form, in order: each name as text, each value as a part of doc.
// doc must be a result of [JSON] or [Marshal]. A value that is not an object has no members.
func Members(doc []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
		if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
			return
		}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return
			}
			text := name.String()
			value, err := dec.ReadValue()
			if err != nil {
				return
			}
			end := dec.InputOffset()
			if !yield(text, doc[int(end)-len(value):end:end]) {
				return
			}
		}
	}
}

// Unquote returns the text of a JSON string.
func Unquote(v jsontext.Value) (string, error) {
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	if err != nil {
		return "", Explain(err)
	}
	return string(b), nil
}
