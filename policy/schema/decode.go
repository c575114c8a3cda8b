package schema

import (
	"bytes"
	stdjson "encoding/json" // for the type Number alone, by which the validator knows an exact number
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errTooDeep   = errors.New("nests too deep")
	errNumber    = errors.New("is a number too large to compute with")
	errDuplicate = errors.New("stands twice in one object")
)

// A decoder reads one strict JSON value into the validator's data model: map[string]any, []any, string, Number, bool
// and nil. A number keeps its literal.
type decoder struct {
	dec      *jsontext.Decoder
	lim      Limits
	maxDepth int
}

// decode reads doc, nesting at most maxDepth levels.
func decode(doc []byte, maxDepth int, lim Limits) (v any, err error) {
	// Duplicate names are found below, by the map that is built anyway.
	d := &decoder{dec: jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true)), lim: lim, maxDepth: maxDepth}
	v, err = d.value(0)
	if err == nil {
		if _, end := d.dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("there is text behind the JSON value")
		}
	}
	return v, err
}

func (d *decoder) value(depth int) (any, error) {
	if depth > d.maxDepth {
		return nil, errTooDeep
	}
	tok, err := d.dec.ReadToken()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return d.number(tok.String())
	case '[':
		return d.array(depth)
	default:
		return d.object(depth)
	}
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	for d.dec.PeekKind() != ']' {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := d.dec.ReadToken()
	return items, err
}

func (d *decoder) object(depth int) (any, error) {
	members := map[string]any{}
	for d.dec.PeekKind() != '}' {
		tok, err := d.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("the name %s %w", quoted(name), errDuplicate)
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		members[name] = v
	}
	_, err := d.dec.ReadToken()
	return members, err
}

// number bounds a literal before it can reach exact arithmetic: 1e1000000000 has a billion digits there.
func (d *decoder) number(literal string) (any, error) {
	e := strings.IndexAny(literal, "eE")
	switch {
	case len(literal) > d.lim.NumberBytes:
		return nil, fmt.Errorf("%s %w", quoted(literal), errNumber)
	case e >= 0:
		exponent, err := strconv.Atoi(literal[e+1:])
		if err != nil || exponent > d.lim.Exponent || exponent < -d.lim.Exponent {
			return nil, fmt.Errorf("%s %w", quoted(literal), errNumber)
		}
	}
	return stdjson.Number(literal), nil
}
