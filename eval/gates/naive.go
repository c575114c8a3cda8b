package gates

import (
	"encoding/json"
	"math/big"
	"reflect"
	"unicode/utf8"
)

// fits is what the naive validator says of a document.
type fits int

// What it can say. It knows few keywords, and says so.
const (
	unknown fits = iota
	valid
	invalid
)

// naive holds a document to a schema of the simplest kind, in a closed world, without the validator that the gates use. It is
// there so that a case can be made smaller without asking the gate what is right.
func naive(schema, doc []byte) fits {
	s, sure := decodeStrictly(schema, 1<<20)
	v, strict := decodeStrictly(doc, 1<<20)
	switch {
	case !sure || !strict && json.Valid(doc): // too deep for the second reader, say
		return unknown
	case !strict:
		return invalid
	}
	return naiveValue(s, v, true)
}

// naiveValue judges one value. At the top the world is closed even if no key is named.
func naiveValue(schema, v any, top bool) fits {
	s, ok := schema.(map[string]any)
	if !ok {
		return unknown
	}
	all := valid
	for keyword, arg := range s { // the worst of all keywords, in any order
		switch got := naiveKeyword(s, keyword, arg, v); {
		case got == unknown:
			return unknown
		case got == invalid:
			all = invalid
		}
	}
	object, isObject := v.(map[string]any)
	_, says := s["additionalProperties"]
	properties, names := s["properties"].(map[string]any)
	if _, literal := s["const"]; isObject && !says && !literal && (names || top) {
		for name := range object { // any that is not named refuses, in any order
			if _, named := properties[name]; !named {
				return invalid
			}
		}
	}
	return all
}

func naiveKeyword(s map[string]any, keyword string, arg, v any) fits {
	switch keyword {
	case "$schema", "title", "description", "default", "examples":
		return valid
	case "type":
		return naiveType(arg, v)
	case "const":
		return yes(reflect.DeepEqual(arg, v) && !isNumber(v), isNumber(v))
	case "required", "properties", "additionalProperties":
		if object, ok := v.(map[string]any); ok {
			return naiveObject(s, keyword, arg, object)
		}
		return valid
	case "items":
		if list, ok := v.([]any); ok {
			for _, element := range list {
				if got := naiveValue(arg, element, false); got != valid {
					return got
				}
			}
		}
		return valid
	case "minLength", "maxLength":
		text, isText := v.(string)
		return naiveBound(keyword == "minLength", arg, json.Number(big.NewInt(int64(utf8.RuneCountInString(text))).String()), isText)
	case "minItems", "maxItems":
		list, isList := v.([]any)
		return naiveBound(keyword == "minItems", arg, json.Number(big.NewInt(int64(len(list))).String()), isList)
	case "minimum", "maximum":
		n, isNumber := v.(json.Number)
		return naiveBound(keyword == "minimum", arg, n, isNumber)
	}
	return unknown
}

// yes is valid or invalid, unless it is not known.
func yes(is, notKnown bool) fits {
	switch {
	case notKnown:
		return unknown
	case is:
		return valid
	}
	return invalid
}

func isNumber(v any) bool {
	_, is := v.(json.Number)
	return is
}

func naiveType(arg, v any) fits {
	is := false
	switch v := v.(type) {
	case nil:
		is = arg == "null"
	case bool:
		is = arg == "boolean"
	case string:
		is = arg == "string"
	case []any:
		is = arg == "array"
	case map[string]any:
		is = arg == "object"
	case json.Number:
		if len(v) > readNumberBytes {
			return invalid
		}
		n, ok := new(big.Rat).SetString(string(v))
		is = ok && (arg == "number" || arg == "integer" && n.IsInt())
	}
	_, one := arg.(string)
	return yes(is, !one)
}

func naiveBound(least bool, arg any, n json.Number, concerns bool) fits {
	if !concerns {
		return valid
	}
	bound, ok := arg.(json.Number)
	if !ok || len(n) > readNumberBytes {
		return unknown
	}
	a, isA := new(big.Rat).SetString(string(n))
	b, isB := new(big.Rat).SetString(string(bound))
	if !isA || !isB {
		return unknown
	}
	if least {
		return yes(a.Cmp(b) >= 0, false)
	}
	return yes(a.Cmp(b) <= 0, false)
}

func naiveObject(s map[string]any, keyword string, arg any, object map[string]any) fits {
	switch keyword {
	case "required":
		names, ok := arg.([]any)
		if !ok {
			return unknown
		}
		for _, name := range names {
			text, ok := name.(string)
			if _, has := object[text]; !ok || !has {
				return yes(false, !ok)
			}
		}
	case "properties":
		properties, ok := arg.(map[string]any)
		if !ok {
			return unknown
		}
		all := valid
		for name, of := range properties { // the worst of all, in any order
			if v, has := object[name]; has {
				switch naiveValue(of, v, false) {
				case unknown:
					return unknown
				case invalid:
					all = invalid
				}
			}
		}
		return all
	case "additionalProperties":
		if arg == false {
			properties, _ := s["properties"].(map[string]any)
			for name := range object { // any that is not named refuses, in any order
				if _, named := properties[name]; !named {
					return yes(false, s["patternProperties"] != nil)
				}
			}
			return valid
		}
		return yes(true, arg != true)
	}
	return valid
}
