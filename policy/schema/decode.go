package schema

import (
	stdjson "encoding/json" // for the type Number alone, by which the validator knows an exact number
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
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
	numbers := json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		literal, err := dec.ReadValue()
		if err != nil {
			return err
		}
		*v, err = checkNumber(string(literal), lim)
		return err
	})
	err = json.Unmarshal(doc, &v, json.WithUnmarshalers(numbers))
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		err = semantic.Err
	}
	return v, err
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
