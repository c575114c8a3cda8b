package config

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// readJSON reads one strict JSON value (RFC 8259, UTF-8, no duplicate names, nothing after it). It
// returns nil if there is a fault.
func (f *file) readJSON(text []byte) *node {
	r := &jsonReader{text: text, at: place{1, 1}, dec: jsontext.NewDecoder(bytes.NewReader(text))}
	if _, depth := canonical.Outline(text); depth > MaxDepth {
		f.addFaultAt(r.at, "", "", "the file nests deeper than %d levels", MaxDepth)
		return nil
	}
	if offset, found := findJSONFault(text); found != (fault{}) {
		f.addFaultAt(r.placeAt(offset), "", found.remedy, "not JSON: %s", found.problem)
		return nil
	}
	return r.readValue()
}

// findJSONFault returns the first fault of a text and its offset; the zero fault if the text is
// strict JSON.
func findJSONFault(text []byte) (offset int, f fault) {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	err := dec.SkipValue()
	if err == nil {
		trailing := bytes.TrimLeft(text[dec.InputOffset():], " \t\r\n")
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			return 0, fault{}
		}
		return len(text) - len(trailing), fault{"there is text after the value", "remove it"}
	}

	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return len(text), fault{"the value ends too early", "write a value, or {} for an empty object"}
	}

	f = fault{syntactic.Err.Error(),
		"JSON has no comments, no comma after the last entry, and quotes around keys and texts"}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		f.remedy = "keep one of them"
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.remedy = "close every {, [ and quotation mark"
	case strings.HasPrefix(f.problem, "invalid surrogate pair"):
		f.remedy = "write the character itself"
	}
	return int(syntactic.ByteOffset), f
}

// A jsonReader reads a text that is strict JSON.
type jsonReader struct {
	text []byte
	dec  *jsontext.Decoder

	// placeAt finds the place of an offset by reading on from the previous one.
	offset int
	at     place
}

// placeAt returns the place of an offset. Offsets must not decrease from call to call.
func (r *jsonReader) placeAt(offset int) place {
	for offset = min(offset, len(r.text)); r.offset < offset; {
		c, size := utf8.DecodeRune(r.text[r.offset:])
		r.offset += size
		if r.at.col++; c == '\n' {
			r.at = place{r.at.line + 1, 1}
		}
	}
	return r.at
}

// readToken reads a token and its place.
func (r *jsonReader) readToken() (jsontext.Token, place) {
	remaining := bytes.TrimLeft(r.text[r.dec.InputOffset():], " \t\r\n,:")
	t, err := r.dec.ReadToken()
	if err != nil {
		panic("config: a text that was checked is not JSON: " + err.Error())
	}
	return t, r.placeAt(len(r.text) - len(remaining))
}

var jsonKinds = map[jsontext.Kind]kind{'n': isNull, 't': isBool, 'f': isBool, '0': isNumber, '"': isText, '[': isList,
	'{': isMap}

func (r *jsonReader) readValue() *node {
	t, at := r.readToken()
	n := &node{kind: jsonKinds[t.Kind()], at: at}
	if n.kind != isList && n.kind != isMap {
		if n.kind != isNull {
			n.text = t.String()
		}
		return n
	}

	for end := r.dec.PeekKind(); end != ']' && end != '}'; end = r.dec.PeekKind() {
		var m member
		if n.kind == isMap {
			name, at := r.readToken()
			m.key, m.at = name.String(), at
		}
		if m.value = r.readValue(); n.kind == isList {
			m.at = m.value.at
		}
		n.members = append(n.members, m)
	}

	r.readToken()
	return n
}
