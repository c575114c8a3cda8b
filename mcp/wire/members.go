package wire

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Members calls visit for each member of the one JSON object in doc, in order, with a slice of doc
// as the value. Duplicate names at any depth and broken UTF-8 are errors, unless the options allow
// them; other values and text after the object are always errors. The members before an error were
// visited.
func Members(doc []byte, visit func(name string, value jsontext.Value) error, options ...jsontext.Options) error {
	return readMembers(doc, visit, nil, options...)
}

// readMembers is [Members]; inside is that of [canonical.WalkMembers].
func readMembers(doc []byte, visit func(name string, value jsontext.Value) error, inside func(name string) *[]Piece,
	options ...jsontext.Options) error {
	return canonical.Decode(doc, func(dec *jsontext.Decoder) error {
		if dec.PeekKind() != '{' {
			if _, err := dec.ReadValue(); err != nil {
				return err
			}
			return errors.New("it is not a JSON object")
		}
		if err := canonical.WalkMembers(dec, doc, func(p Piece) error { return visit(p.Name, p.Value) }, inside); err != nil {
			return err
		}
		switch _, err := dec.ReadToken(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		return errors.New("there is text behind the JSON object")
	}, options...)
}

// CheckObject returns the error with which [Members] rejects doc; nil if it reads doc.
func CheckObject(doc []byte) error {
	return Members(doc, func(string, jsontext.Value) error { return nil })
}

// Member returns the value of a member of the object in doc; nil if there is none, or doc is not
// one JSON object. If a name comes twice, the last value counts: only [Read] pays the memory to
// look for repeated names. UTF-8 may be broken, because results of servers pass unchanged.
func Member(doc []byte, name string) (value jsontext.Value) {
	if len(doc) == 0 {
		return nil
	}
	err := Members(doc, func(n string, v jsontext.Value) error {
		if n == name {
			value = v
		}
		return nil
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil
	}
	return value
}

// Text decodes a JSON string. The error quotes nothing of it.
func Text(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errNoText
	}
	var short [64]byte
	b, err := jsontext.AppendUnquote(short[:0], value)
	if err != nil {
		err = errNoText
	}
	return string(b), err
}

var errNoText = errors.New("it is not a string of valid characters")

// A Piece is one member of an object.
type Piece = canonical.Member

// ForEachMember calls visit for each member of the object in doc, in order. It is for documents
// that are known to be JSON: names may repeat and UTF-8 may be broken, because results of servers
// pass unchanged. It reports false if doc is not such an object; visit was then called for the
// members before the fault.
func ForEachMember(doc []byte, visit func(Piece)) bool {
	return decodeLeniently(doc, func(dec *jsontext.Decoder) error {
		return canonical.WalkMembers(dec, doc, func(p Piece) error {
			visit(p)
			return nil
		}, nil)
	}) == nil
}

// Items calls visit for each element of the array in doc, as [ForEachMember] does for members.
func Items(doc []byte, visit func(item jsontext.Value, at int)) bool {
	return decodeLeniently(doc, func(dec *jsontext.Decoder) error {
		if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
			return errors.Join(err, errors.New("it is not a JSON array"))
		}
		for dec.PeekKind() != ']' {
			item, at, err := canonical.NextValue(dec, doc)
			if err != nil {
				return err
			}
			visit(item, at)
		}
		return nil
	}) == nil
}

func decodeLeniently(doc []byte, read func(*jsontext.Decoder) error) error {
	return canonical.Decode(doc, read, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// TextMember returns the string that [Member] finds; "" if there is none.
func TextMember(doc []byte, name string) string {
	text, _ := Text(Member(doc, name))
	return text
}

// NonNull returns value, or nil for null.
func NonNull(value jsontext.Value) jsontext.Value {
	if value.Kind() == 'n' {
		return nil
	}
	return value
}
