package canonical

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of an object in canonical form, in order: each name as text, each
// value as a part of doc. doc must be a result of [JSON] or [Marshal]. A value that is not an
// object has no members.
func Members(doc []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		// JSON has refused repeated names and everything else that is an error here.
		_ = Decode(doc, func(dec *jsontext.Decoder) error {
			if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
				return err
			}
			for dec.PeekKind() == '"' {
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
				if !yield(text, doc[int(end)-len(value):end:end]) {
					return nil
				}
			}
			return nil
		}, jsontext.AllowDuplicateNames(true))
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

// Cut returns an object without a member, and the value of that member as a part of doc. If doc is
// no JSON object with this member, rest is nil and value is doc. If names repeat, all such members
// go and the last one counts.
func Cut(doc []byte, name string) (rest, value []byte) {
	if !jsontext.Value(doc).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, doc
	}
	rest = []byte{'{'}
	for label, v := range Members(doc) {
		if label == name {
			value = v
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(AppendText(rest, label), ':'), v...)
	}
	if value == nil {
		return nil, doc
	}
	return append(rest, '}'), value
}
