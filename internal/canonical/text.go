package canonical

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Text holds the exact bytes of an input from outside. Its JSON form is a string if it is UTF-8,
// and {"base64":"…"} only if it is not, so that each value has one form.
type Text []byte

type encodedText struct {
	Base64 string `json:"base64"`
}

// MarshalJSONTo writes the one form of t.
func (t Text) MarshalJSONTo(enc *jsontext.Encoder) error {
	if utf8.Valid(t) {
		return enc.WriteToken(jsontext.String(string(t)))
	}
	return json.MarshalEncode(enc, encodedText{base64.StdEncoding.EncodeToString(t)})
}

// UnmarshalJSONFrom reads the one form of t and refuses all others.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		b, err := jsontext.AppendUnquote(nil, v)
		*t = b
		return err
	}
	var e encodedText
	if err := json.UnmarshalDecode(dec, &e, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(e.Base64)
	if err != nil {
		return err
	}
	if base64.StdEncoding.EncodeToString(b) != e.Base64 { // the decoder skips line breaks
		return errors.New("base64 has one spelling, without line breaks")
	}
	if utf8.Valid(b) {
		return errors.New("UTF-8 text must be a plain string, not base64")
	}

	*t = b
	return nil
}
