package config

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema returns the JSON Schema (2020-12) of the configuration, for editors: what it refuses, [Parse] refuses too.
// Parse refuses more, like a route to a server that is not configured.
func Schema() []byte {
	var b bytes.Buffer
	w := &schemaWriter{jsontext.NewEncoder(&b, jsontext.WithIndent("  "))}
	w.open()
	w.put("$schema", jsontext.String("https://json-schema.org/draft/2020-12/schema"))
	w.put("title", jsontext.String("pgfsm.yaml"))
	w.put("description", jsontext.String("The configuration of pgfsm."))
	w.body(configuration)
	w.close()
	return b.Bytes()
}

// schemaWriter writes members in a fixed order. What it is given is constant, so that an error is a mistake in the
// table of keys, which any test shows.
type schemaWriter struct{ enc *jsontext.Encoder }

func (w *schemaWriter) token(t jsontext.Token) {
	if err := w.enc.WriteToken(t); err != nil {
		panic("settings: the schema does not encode: " + err.Error())
	}
}

func (w *schemaWriter) open()  { w.token(jsontext.BeginObject) }
func (w *schemaWriter) close() { w.token(jsontext.EndObject) }

func (w *schemaWriter) put(name string, value jsontext.Token) {
	w.token(jsontext.String(name))
	w.token(value)
}

func (w *schemaWriter) raw(name string, value jsontext.Value) {
	w.token(jsontext.String(name))
	if err := w.enc.WriteValue(value); err != nil {
		panic("settings: the schema does not encode: " + err.Error())
	}
}

// nested writes a member that is a schema.
func (w *schemaWriter) nested(name string, body func()) {
	w.token(jsontext.String(name))
	w.open()
	body()
	w.close()
}

func (w *schemaWriter) strings(name string, values []string) {
	w.token(jsontext.String(name))
	w.token(jsontext.BeginArray)
	for _, v := range values {
		w.token(jsontext.String(v))
	}
	w.token(jsontext.EndArray)
}

func (w *schemaWriter) atLeast(name string, n int64) {
	if n > 0 {
		w.put(name, jsontext.Int(n))
	}
}

// body writes the keywords of one shape.
func (w *schemaWriter) body(s *shape) {
	if s.alt != nil {
		w.either(s)
		return
	}
	switch s.form {
	case object:
		w.object(s)
	case text:
		w.put("type", jsontext.String("string"))
		w.texts(s)
	case table:
		w.put("type", jsontext.String("object"))
		w.atLeast("minProperties", s.min)
		w.atLeast("maxProperties", s.max)
		w.nested("propertyNames", func() { w.texts(s.name) })
		w.nested("additionalProperties", func() { w.body(s.each) })
	case anyJSON:
	case list:
		w.list(s)
	case integer:
		w.put("type", jsontext.String("integer"))
		w.put("minimum", jsontext.Int(s.min))
		w.put("maximum", jsontext.Int(s.max))
	case duration:
		w.put("type", jsontext.String("string"))
		w.put("pattern", jsontext.String(durationPattern.String()))
	case boolean:
		w.put("type", jsontext.String("boolean"))
	case anything:
		w.put("type", jsontext.String("object"))
	}
}

// either writes the schema of a value and of what may stand in its place.
func (w *schemaWriter) either(s *shape) {
	plain := *s
	plain.alt = nil
	w.token(jsontext.String("anyOf"))
	w.token(jsontext.BeginArray)
	for _, one := range []*shape{&plain, s.alt} {
		w.open()
		w.body(one)
		w.close()
	}
	w.token(jsontext.EndArray)
}

// list writes the keywords of a list.
func (w *schemaWriter) list(s *shape) {
	w.put("type", jsontext.String("array"))
	w.atLeast("minItems", s.min)
	w.atLeast("maxItems", s.max)
	if s.unique == "." {
		w.put("uniqueItems", jsontext.True)
	}
	w.nested("items", func() { w.body(s.each) })
}

// texts bounds a text. JSON Schema counts characters where we count bytes: it refuses no more than we do.
func (w *schemaWriter) texts(s *shape) {
	if !s.empty {
		w.put("minLength", jsontext.Int(1))
	}
	w.put("maxLength", jsontext.Int(s.longest()))
	if s.match != nil {
		w.put("pattern", jsontext.String(s.match.String()))
	}
	if len(s.enum) > 0 {
		w.strings("enum", s.enum)
	}
}

func (w *schemaWriter) object(s *shape) {
	w.put("type", jsontext.String("object"))
	var required []string
	w.nested("properties", func() {
		for _, k := range s.keys {
			if k.required {
				required = append(required, k.name)
			}
			w.nested(k.name, func() {
				w.put("description", jsontext.String(k.doc))
				if k.initial != "" {
					w.raw("default", k.initialJSON())
				}
				w.body(k.shape)
			})
		}
	})
	if len(required) > 0 {
		w.strings("required", required)
	}
	w.put("additionalProperties", jsontext.False)
	if s.oneOf != nil {
		w.raw("oneOf", s.oneOf)
	}
}

// initialJSON is the default as JSON.
func (k *key) initialJSON() jsontext.Value {
	switch {
	case slices.Contains([]form{integer, boolean, anything}, k.shape.form):
		return jsontext.Value(k.initial)
	case k.shape.form == list:
		return jsontext.Value(`["` + strings.Join(initialWords(k.initial), `","`) + `"]`)
	}
	return jsontext.Value(strconv.Quote(k.initial))
}
