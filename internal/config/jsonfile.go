package config

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads one strict JSON value (RFC 8259, UTF-8, no duplicate names, nothing after it). It returns nil if the value cannot be
// checked further.
func (f *file) readJSON(text []byte) *node {
	r := &jsonReader{file: f, text: text, at: place{1, 1}, dec: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))}
	root, err := r.value(1)
	if err != nil {
		r.fault(err)
		return nil
	}
	if rest := bytes.TrimLeft(text[r.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		f.faultAt(r.placeAt(len(text)-len(rest)), "", "remove it", "there is text after the JSON value")
	}
	return root
}

var errTooDeep = errors.New("too deep")

type jsonReader struct {
	file *file
	text []byte
	dec  *jsontext.Decoder
	last *node // the scalar before

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

// token reads a token and its place.
func (r *jsonReader) token() (jsontext.Token, place, error) {
	rest := bytes.TrimLeft(r.text[r.dec.InputOffset():], " \t\r\n,:")
	t, err := r.dec.ReadToken()
	if err != nil {
		return t, place{}, err
	}
	at := r.placeAt(len(r.text) - len(rest))
	if r.last != nil {
		r.last.until, r.last = at, nil
	}
	return t, at, nil
}

var jsonKinds = map[jsontext.Kind]kind{'n': isNull, 't': isBool, 'f': isBool, '0': isNumber, '"': isText, '[': isList, '{': isMap}

func (r *jsonReader) value(depth int) (*node, error) {
	t, at, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &node{kind: jsonKinds[t.Kind()], at: at}
	if n.kind == isList || n.kind == isMap {
		return n, r.members(n, depth)
	}
	if r.last = n; n.kind != isNull {
		n.text = t.String()
	}
	return n, nil
}

func (r *jsonReader) members(n *node, depth int) error {
	if depth > MaxDepth {
		r.file.faultAt(n.at, "", "", "the file nests deeper than %d levels", MaxDepth)
		return errTooDeep
	}
	seen := make(map[string]place)
	for kind := r.dec.PeekKind(); kind != ']' && kind != '}'; kind = r.dec.PeekKind() {
		var m member
		if n.kind == isMap {
			t, at, err := r.token()
			if err != nil {
				return err
			}
			m.key, m.at = t.String(), at
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if m.value = value; n.kind == isList {
			m.at = value.at
		} else if !r.file.checkUnseen(seen, m.key, m.at) {
			continue
		}
		n.members = append(n.members, m)
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *jsonReader) fault(err error) {
	if errors.Is(err, errTooDeep) {
		return
	}
	var syntactic *jsontext.SyntacticError
	offset, problem := int(r.dec.InputOffset()), "the value ends too early"
	if errors.As(err, &syntactic) {
		offset, problem = int(syntactic.ByteOffset), syntactic.Err.Error()
	}
	r.offset, r.at = 0, place{1, 1}
	r.file.faultAt(r.placeAt(offset), "", "", "not JSON: %s", problem)
}
