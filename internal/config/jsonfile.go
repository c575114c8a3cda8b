package config

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads one strict JSON value (RFC 8259, UTF-8, no duplicate names, nothing behind it) into nodes and notes faults in src. It returns nil if the
// value cannot be checked further. Nothing in these files is secret.
func readJSON(src *source, text []byte) *node {
	src.known = true
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	r := &jsonReader{src: src, text: text, dec: dec}
	root, err := r.value(1)
	if err != nil {
		r.syntaxFault(err)
		return nil
	}
	if rest := bytes.TrimLeft(text[r.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		src.fault(r.placeAt(len(text)-len(rest)), "", "remove it", "there is text behind the JSON value")
	}
	return root
}

var errTooDeep = errors.New("too deep")

type jsonReader struct {
	src  *source
	text []byte
	dec  *jsontext.Decoder
	// The place of an offset is found by reading on from the one before.
	offset int
	at     place
}

// placeAt returns the place of an offset that is not before the last one asked for.
func (r *jsonReader) placeAt(offset int) place {
	if r.at == (place{}) || offset < r.offset {
		r.offset, r.at = 0, place{1, 1}
	}
	for offset = min(offset, len(r.text)); r.offset < offset; {
		c, size := utf8.DecodeRune(r.text[r.offset:])
		r.offset += size
		if r.at.col++; c == '\n' {
			r.at = place{r.at.line + 1, 1}
		}
	}
	return r.at
}

func (r *jsonReader) value(depth int) (*node, error) {
	switch r.dec.PeekKind() {
	case '{', '[':
		t, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		at := r.placeAt(int(r.dec.InputOffset()) - 1)
		if depth > MaxDepth {
			r.src.fault(at, "", "", "the file nests deeper than %d levels", MaxDepth)
			return nil, errTooDeep
		}
		if t.Kind() == '[' {
			return r.list(at, depth)
		}
		return r.object(at, depth)
	}
	raw, at, err := r.scalar()
	if err != nil {
		return nil, err
	}
	n := &node{kind: isText, at: at, text: string(raw)}
	switch raw.Kind() {
	case 'n':
		n.kind = isNull
	case 't', 'f':
		n.kind = isBool
	case '0':
		n.kind = isNumber
	default:
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, err
		}
		n.text = string(text)
	}
	return n, nil
}

func (r *jsonReader) scalar() (jsontext.Value, place, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, place{}, err
	}
	return raw, r.placeAt(int(r.dec.InputOffset()) - len(raw)), nil
}

func (r *jsonReader) list(at place, depth int) (*node, error) {
	out := &node{kind: isList, at: at}
	for r.dec.PeekKind() != ']' {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, item)
	}
	_, err := r.dec.ReadToken()
	return out, err
}

func (r *jsonReader) object(at place, depth int) (*node, error) {
	out := &node{kind: isMap, at: at}
	seen := make(map[string]place)
	for r.dec.PeekKind() != '}' {
		raw, keyAt, err := r.scalar()
		if err != nil {
			return nil, err
		}
		name, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, err
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key := string(name)
		if first, twice := seen[key]; twice {
			r.src.fault(keyAt, key, "keep one of them",
				"the key %s stands twice; first at %d:%d", quote(key), first.line, first.col)
			continue
		}
		seen[key] = keyAt
		out.members = append(out.members, member{key, keyAt, value})
	}
	_, err := r.dec.ReadToken()
	return out, err
}

func (r *jsonReader) syntaxFault(err error) {
	if errors.Is(err, errTooDeep) {
		return
	}
	var syntactic *jsontext.SyntacticError
	offset, problem := int(r.dec.InputOffset()), "the value ends too early"
	if errors.As(err, &syntactic) {
		offset, problem = int(syntactic.ByteOffset), syntactic.Err.Error()
	}
	r.src.fault(r.placeAt(offset), "", "", "not JSON: %s", problem)
}
