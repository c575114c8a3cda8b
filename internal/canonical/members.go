package canonical

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// A Member is one member of an object in a document.
type Member struct {
	Name  string
	Value jsontext.Value // a slice of the document
	At    int            // where Value begins in the document
	Whole []byte         // name and value as in the document
}

// ReadMembers returns the members of the one strict JSON object in doc, in order.
func ReadMembers(doc []byte) (members []Member, err error) {
	err = Decode(doc, func(dec *jsontext.Decoder) error {
		if dec.PeekKind() != '{' {
			return errNoObject
		}
		err := WalkMembers(dec, doc, func(m Member) error {
			members = append(members, m)
			return nil
		}, nil)
		if err != nil {
			return err
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return ErrTrailing
		}
		return nil
	})
	return members, err
}

// WalkMembers reads the next object of doc, and calls visit for each member. If inside is not nil, it
// says for a name where the members of its value go, if the value is an object; their places are
// those in the value.
func WalkMembers(dec *jsontext.Decoder, doc []byte, visit func(Member) error,
	inside func(name string) *[]Member) error {
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return errors.Join(err, errNoObject)
	}
	for dec.PeekKind() != '}' {
		name, start, err := NextValue(dec, doc)
		if err != nil {
			return err
		}

		var m Member
		var short [64]byte
		text, _ := jsontext.AppendUnquote(short[:0], name) // the options may allow broken UTF-8, which then stays
		m.Name = string(text)

		var members *[]Member
		if inside != nil {
			members = inside(m.Name)
		}
		if members != nil && dec.PeekKind() == '{' {
			m.Value, m.At, err = collectMembers(dec, doc, members)
		} else {
			m.Value, m.At, err = NextValue(dec, doc)
		}
		if err != nil {
			return err
		}

		end := m.At + len(m.Value)
		m.Whole = doc[start:end:end]
		if err := visit(m); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// collectMembers reads the next value, which is an object, and its members.
func collectMembers(dec *jsontext.Decoder, doc []byte, members *[]Member) (jsontext.Value, int, error) {
	// The decoder has peeked at the brace, but not moved.
	start := int(dec.InputOffset())
	start += bytes.IndexByte(doc[start:], '{')

	collected := make([]Member, 0, usualMembers)
	err := WalkMembers(dec, doc, func(m Member) error {
		m.At -= start
		collected = append(collected, m)
		return nil
	}, nil)
	if err != nil {
		return nil, 0, err
	}

	*members = collected
	end := int(dec.InputOffset())
	return doc[start:end:end], start, nil
}

// usualMembers is the number of members that most objects of MCP do not exceed.
const usualMembers = 4

// NextValue reads the next value of doc and returns it as a slice of doc.
func NextValue(dec *jsontext.Decoder, doc []byte) (value jsontext.Value, start int, err error) {
	decoded, err := dec.ReadValue()
	if err != nil {
		return nil, 0, err
	}
	end := int(dec.InputOffset())
	start = end - len(decoded)
	return doc[start:end:end], start, nil
}

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

// IsName reports whether the last token of a decoder is the name of a member.
func IsName(dec *jsontext.Decoder) bool {
	container, n := dec.StackIndex(dec.StackDepth())
	return container == '{' && n%2 == 1
}
