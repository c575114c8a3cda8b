package schema

import (
	stdjson "encoding/json" // for the type Number alone
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// uniqueItems judges the keyword of its name in place of the validator, whose hash does not
// separate its parts: an array of many different items with one hash, which anybody can write down,
// takes it quadratic time.
type uniqueItems struct{}

// Validate implements [jsonschema.SchemaExt].
func (uniqueItems) Validate(ctx *jsonschema.ValidatorContext, v any) {
	items, ok := v.([]any)
	if !ok || len(items) < 2 {
		return
	}
	first := make(map[string]int, len(items))
	for i, item := range items {
		key := string(appendKey(nil, item))
		if j, twice := first[key]; twice {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		first[key] = i
	}
}

// uniqueByKey puts unique in the place of the validator's own uniqueItems.
func uniqueByKey(nodes []*node) {
	for _, n := range nodes {
		if n.UniqueItems {
			n.UniqueItems = false
			n.Extensions = append(n.Extensions, uniqueItems{})
		}
	}
}

// appendKey appends bytes that are equal exactly for values that are equal in JSON Schema: numbers
// by value, objects without order.
func appendKey(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendText(append(b, 's'), v)
	case stdjson.Number:
		value, ok := new(big.Rat).SetString(string(v))
		if !ok {
			return appendText(append(b, '?'), string(v))
		}
		return appendText(append(b, '#'), value.RatString())
	case []any:
		b = append(strconv.AppendInt(append(b, 'a'), int64(len(v)), 10), ':')
		for _, item := range v {
			b = appendKey(b, item)
		}
		return b
	case map[string]any:
		b = append(strconv.AppendInt(append(b, 'o'), int64(len(v)), 10), ':')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = appendKey(appendText(b, name), v[name])
		}
		return b
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}
