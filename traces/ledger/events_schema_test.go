package ledger

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/states"
)

// A schema is a JSON Schema.
type schema = map[string]any

// digestForm is the form of a digest.
const digestForm = "^sha256:[0-9a-f]{64}$"

// TestEventsSchema: docs/reference/events.schema.json describes the payload of each type of event.
func TestEventsSchema(t *testing.T) {
	events := make([]any, len(payloads))
	for i, p := range payloads {
		s := objectSchema(reflect.TypeOf(p).Elem())
		s["properties"].(schema)["type"] = schema{"const": string(p.eventType())}
		s["required"] = append(s["required"].([]string), "type")
		events[i] = s
	}
	doc, err := json.Marshal(schema{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "An event of a ledger of pgfsm",
		"description": "An element of the member events of a body. record-format.md says what the members mean, and has the rules that no schema can say.",
		"oneOf":       events,
	}, json.Deterministic(true), jsontext.WithIndent("  "))
	check.NoError(t, err)
	golden.File(t, "../../docs/reference/events.schema.json", append(doc, '\n'))
}

// objectSchema returns the schema of an object with exactly the members of a struct.
func objectSchema(of reflect.Type) schema {
	properties, required := make(schema), []string{}
	var add func(reflect.Type)
	add = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				add(f.Type)
			case name == "" || name == "type" && f.Type == reflect.TypeFor[Type]() || !f.IsExported():
			case strings.Contains(options, "omit"):
				properties[name] = valueSchema(f.Type, true)
			default:
				properties[name] = valueSchema(f.Type, false)
				required = append(required, name)
			}
		}
	}
	add(of)
	return schema{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

// valueSchema returns the schema of a value. A value that is left out if it is empty is not empty.
func valueSchema(of reflect.Type, nonEmpty bool) schema {
	s := schema{}
	switch {
	case of == reflect.TypeFor[jsontext.Value]():
		return s
	case of == reflect.TypeFor[canonical.Digest]():
		if s = (schema{"type": "string", "pattern": digestForm}); !nonEmpty {
			s["pattern"] = "^$|" + digestForm
		}
		return s
	case of == reflect.TypeFor[canonical.Text]():
		return schema{"type": []string{"string", "object"}, "description": "text, as in trace-format.md"}
	case of == reflect.TypeFor[*plannedCall]():
		return schema{"oneOf": []any{schema{"type": "null"}, objectSchema(of.Elem())}}
	case of == reflect.TypeFor[states.Request]():
		s := objectSchema(of)
		s["required"] = []string{"actor", "at", "kind"} // the text is left out if it is the call's
		return s
	}
	switch of.Kind() {
	case reflect.Pointer:
		return valueSchema(of.Elem(), nonEmpty)
	case reflect.String:
		s["type"] = "string"
		if nonEmpty {
			s["minLength"] = 1
		}
	case reflect.Int, reflect.Int64:
		s["type"] = "integer"
		if nonEmpty {
			s["not"] = schema{"const": 0}
		}
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Slice:
		s["type"], s["items"] = "array", valueSchema(of.Elem(), false)
		if nonEmpty {
			s["minItems"] = 1
		}
	case reflect.Struct:
		return objectSchema(of)
	default:
		panic("no schema for " + of.String())
	}
	return s
}
