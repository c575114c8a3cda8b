package canonical

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode calls read with a decoder of doc, and returns its error. The decoder belongs to package
// json, which uses its memory again for later documents: a decoder of one's own allocates all of it
// each time. Only read may use the decoder. If read leaves a part of doc unread, that is no error.
func Decode(doc []byte, read func(*jsontext.Decoder) error, options ...jsontext.Options) error {
	l := lentDecoder{read: read}
	err := json.Unmarshal(doc, &l, options...)
	if l.called {
		return l.err // Unmarshal wraps it
	}
	return err
}

// A lentDecoder passes the decoder of json.Unmarshal on.
type lentDecoder struct {
	read   func(*jsontext.Decoder) error
	called bool // false: there is no value to read
	err    error
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *lentDecoder) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	l.called, l.err = true, l.read(dec)
	return l.err
}
