package condition

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// decodeArgs turns the arguments into a value, or into an error that any use of them is.
func decodeArgs(args []byte) ref.Val {
	if len(args) > MaxArgs {
		return types.NewErr("the arguments have %d bytes, more than %d", len(args), MaxArgs)
	}
	if err := canonical.CheckDepth(args, MaxArgsDepth); err != nil {
		return types.WrapErr(err)
	}
	d := decoder{dec: jsontext.NewDecoder(bytes.NewBuffer(args)), doc: string(args)}
	if d.dec.PeekKind() != '{' {
		return types.NewErr("the arguments are not a JSON object")
	}
	v, err := d.value()
	if err == nil {
		if _, behind := d.dec.ReadToken(); !errors.Is(behind, io.EOF) {
			err = canonical.ErrTrailing
		}
	}
	if err != nil {
		return types.WrapErr(canonical.Explain(err))
	}
	return v
}

// A decoder reads one document. What it reads as text is a part of doc, so that texts are not copied one by one.
type decoder struct {
	dec *jsontext.Decoder
	doc string
}

// value turns the next JSON value into a value.
func (d *decoder) value() (ref.Val, error) {
	switch kind := d.dec.PeekKind(); kind {
	case '{':
		return d.object()
	case '[':
		return d.list()
	case '"':
		return d.text()
	default:
		raw, err := d.raw()
		switch {
		case err != nil:
			return nil, err
		case kind == 'n':
			return types.NullValue, nil
		case kind == '0':
			return number(raw), nil
		}
		return types.Bool(kind == 't'), nil
	}
}

// raw returns the next value as it stands in the document.
func (d *decoder) raw() (string, error) {
	raw, err := d.dec.ReadValue()
	end := int(d.dec.InputOffset())
	return d.doc[end-len(raw) : end], err
}

func (d *decoder) text() (types.String, error) {
	raw, err := d.raw()
	if err != nil {
		return "", err
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return types.String(raw[1 : len(raw)-1]), nil
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	return types.String(b), err
}

func (d *decoder) object() (ref.Val, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return nil, err
	}
	var o object
	for d.dec.PeekKind() != '}' {
		name, err := d.text()
		if err != nil {
			return nil, err
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, member{name, v})
	}
	_, err := d.dec.ReadToken()
	o.index()
	return &o, err
}

func (d *decoder) list() (ref.Val, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return nil, err
	}
	var elems []ref.Val
	for d.dec.PeekKind() != ']' {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		elems = append(elems, v)
	}
	_, err := d.dec.ReadToken()
	return types.NewRefValList(types.DefaultTypeAdapter, elems), err
}
