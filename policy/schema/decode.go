package schema

import (
	stdjson "encoding/json" // for the type Number alone, by which the validator knows an exact number
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

var errNumber = errors.New("is a number too large to compute with")

// decodeValue reads one strict JSON value, which nests at most maxDepth levels, into the
// validator's data model: map[string]any, []any, string, Number, bool and nil. A number keeps its
// literal.
func decodeValue(doc []byte, maxDepth int, lim Limits) (v any, err error) {
	if err := canonical.CheckDepth(doc, max(1, maxDepth)); err != nil {
		return nil, err
	}
	err = canonical.Decode(doc, func(dec *jsontext.Decoder) error {
		if v, err = readValue(dec, lim); err != nil {
			return err
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return canonical.ErrTrailing
		}
		return nil
	})
	return v, err
}

// readValue reads the next value.
func readValue(dec *jsontext.Decoder, lim Limits) (any, error) {
	switch dec.PeekKind() {
	case '0':
		literal, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		return checkNumber(string(literal), lim)
	case '{':
		return readObject(dec, lim)
	case '[':
		return readArray(dec, lim)
	}

	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case '"':
		return token.String(), nil
	default:
		return token.Bool(), nil
	}
}

func readObject(dec *jsontext.Decoder, lim Limits) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	object := make(map[string]any)
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		if object[text], err = readValue(dec, lim); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return object, err
}

func readArray(dec *jsontext.Decoder, lim Limits) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	array := []any{}
	for dec.PeekKind() != ']' {
		item, err := readValue(dec, lim)
		if err != nil {
			return nil, err
		}
		array = append(array, item)
	}
	_, err := dec.ReadToken()
	return array, err
}

// checkNumber bounds a literal before it can reach exact arithmetic: 1e1000000000 has a billion
// digits there.
func checkNumber(literal string, lim Limits) (stdjson.Number, error) {
	e := strings.IndexAny(literal, "eE")
	if len(literal) > lim.NumberBytes {
		return "", fmt.Errorf("%s %w", quoteText(literal), errNumber)
	}
	if e >= 0 {
		exponent, err := strconv.Atoi(literal[e+1:])
		if err != nil || exponent > lim.Exponent || exponent < -lim.Exponent {
			return "", fmt.Errorf("%s %w", quoteText(literal), errNumber)
		}
	}
	return stdjson.Number(literal), nil
}
