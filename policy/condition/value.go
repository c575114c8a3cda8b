package condition

import (
	"errors"
	"io"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// decodeArgs converts the arguments to a value, or to an error value, so that every use of them
// fails.
func decodeArgs(args []byte) ref.Val {
	if jsontext.Value(args).Kind() != '{' && len(args) <= MaxArgs {
		return types.NewErr("the arguments are not a JSON object")
	}
	return decodeJSON("the arguments have", args)
}

// decodeJSON converts a JSON value; has begins the error about its size.
func decodeJSON(has string, text []byte) ref.Val {
	if len(text) > MaxArgs {
		return types.NewErr("%s %d bytes, more than %d", has, len(text), MaxArgs)
	}
	if err := canonical.CheckDepth(text, MaxArgsDepth); err != nil {
		return types.WrapErr(err)
	}
	var v ref.Val
	err := canonical.Decode(text, func(dec *jsontext.Decoder) (err error) {
		if v, err = decodeValue(dec); err != nil {
			return err
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return canonical.ErrTrailing
		}
		return nil
	})
	if err != nil {
		return types.WrapErr(canonical.Explain(err))
	}
	return v
}

// decodeValue reads the next JSON value.
func decodeValue(dec *jsontext.Decoder) (ref.Val, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}

	switch token.Kind() {
	case 'n':
		return types.NullValue, nil
	case '"':
		return types.String(token.String()), nil
	case '0':
		return Number(token.String()), nil
	case '{':
		return decodeObject(dec)
	case '[':
		var elems []ref.Val
		for dec.PeekKind() != ']' {
			v, err := decodeValue(dec)
			if err != nil {
				return nil, err
			}
			elems = append(elems, v)
		}
		_, err := dec.ReadToken()
		return types.NewRefValList(types.DefaultTypeAdapter, elems), err
	}

	return types.Bool(token.Kind() == 't'), nil
}

func decodeObject(dec *jsontext.Decoder) (ref.Val, error) {
	o := &object{members: make(map[string]ref.Val)}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		if o.members[text], err = decodeValue(dec); err != nil {
			return nil, err
		}
		o.names = append(o.names, text)
	}
	_, err := dec.ReadToken()
	return o, err
}
