package canonical

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// An Object is one JSON object in canonical form. Only [ReadObject] and [AppendObject] make one, so
// that nobody who has an Object needs to read it again. The zero Object is none.
type Object struct{ text []byte }

var errNoObject = errors.New("not a JSON object")

// ReadObject reads one strict JSON object.
func ReadObject(doc []byte) (Object, error) {
	_, o, err := AppendObject(make([]byte, 0, len(doc)), doc)
	return o, err
}

// AppendObject reads one strict JSON object and appends its canonical form to b. The Object is that
// part of the result.
func AppendObject(b, doc []byte) ([]byte, Object, error) {
	start := len(b)
	b, err := jsontext.AppendFormat(b, doc, form)
	if err != nil {
		return nil, Object{}, Explain(err)
	}
	if b[start] != '{' {
		return nil, Object{}, errNoObject
	}
	return b, Object{b[start:len(b):len(b)]}, nil
}

// Bytes returns the canonical form, which must not be changed; nil for the zero Object.
func (o Object) Bytes() []byte { return o.text }
