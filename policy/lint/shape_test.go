package lint

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
)

// TestShapes: what can be told of some schemas, and what cannot.
func TestShapes(t *testing.T) {
	for _, tc := range []struct{ name, schema, want string }{
		{"types", `{"properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}}}`, "{a:a text, b:null or a number}"},
		{"nothing-named-is-closed", `{"type":"object"}`, "{}"},
		{"open-in-words", `{"properties":{"a":{"type":"boolean"}},"additionalProperties":{}}`, "{a:a bool, …}"},
		{"pattern-names", `{"patternProperties":{"^x":{}}}`, "{…}"},
		{"nested-open", `{"properties":{"a":{"type":"object"}}}`, "{a:{…}}"},
		{"nested-closed", `{"properties":{"a":{"type":"object","properties":{"b":{}}}}}`, "{a:{b:?}}"},
		{"items", `{"properties":{"a":{"type":"array","items":{"type":"number"}}}}`, "{a:[a number]}"},
		{"reference", `{"$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, "{a:a text}"},
		{"reference-to-itself", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, strings.Repeat("{a:", 9) + "?" + strings.Repeat("}", 9)},
		{"enum", `{"properties":{"a":{"enum":["x",1]},"b":{"const":true}}}`, "{a:a number or a text, b:a bool}"},
		{"alternatives", `{"properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}}},{"properties":{"b":{"type":"null"}}}]}`,
			"{a:a text, b:null or a text}"},
		{"all-of", `{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"null"}}}]}`, "{a:a text, b:null}"},
		{"condition", `{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{"type":"null"}}}}`, "{…}"},
		{"true", `true`, "{}"}, {"a-text", `{"type":"string"}`, "?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := schema.Compile([]byte(tc.schema), schema.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if got := text(shapeOf(s)); got != tc.want {
				t.Errorf("shapeOf(%s) = %s, want %s", tc.schema, got, tc.want)
			}
		})
	}
}

func text(s *condition.Shape) string {
	switch {
	case s == nil:
		return "?"
	case s.Kinds == condition.KindObject:
		var out []string
		for _, name := range s.Names() {
			out = append(out, name+":"+text(s.Members[name]))
		}
		if s.Open {
			out = append(out, "…")
		}
		return "{" + strings.Join(out, ", ") + "}"
	case s.Kinds == condition.KindList:
		return "[" + text(s.Items) + "]"
	}
	return s.Kinds.String()
}

// TestShapesAreWideEnough: whatever a schema accepts, its shape allows. Random schemas, random documents.
func TestShapesAreWideEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 35))
	accepted, told := 0, 0
	for range 400 {
		src := randomSchema(r, 3)
		s, err := schema.Compile([]byte(src), schema.DefaultLimits())
		if err != nil {
			continue
		}
		shape := shapeOf(s)
		if shape != nil && !shape.Open {
			told++
		}
		for range 40 {
			doc := randomObject(r, 3)
			if s.Judge([]byte(doc)) != nil {
				continue
			}
			accepted++
			var v any
			if err := json.Unmarshal([]byte(doc), &v); err != nil {
				t.Fatal(err)
			}
			if why := misfit(shape, v); why != "" {
				t.Fatalf("%s accepts %s, but its shape %s does not: %s", src, doc, text(shape), why)
			}
		}
	}
	t.Logf("%d accepted documents, %d closed shapes", accepted, told)
	if accepted < 200 || told < 10 {
		t.Error("too little was compared")
	}
}

func randomSchema(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(6) == 0 {
		return []string{`true`, `{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":["null","boolean"]}`,
			`{"enum":["x",1,null]}`, `{"const":"x"}`, `{"type":"object"}`, `{"$ref":"#/$defs/d"}`, `{"type":"array"}`}[r.IntN(10)]
	}
	sub := func() string { return randomSchema(r, depth-1) }
	var words []string
	if depth == 3 {
		words = append(words, `"$defs":{"d":`+randomSchema(r, 1)+`}`)
		if r.IntN(3) == 0 {
			words = append(words, `"$schema":"`+[]string{"http://json-schema.org/draft-07/schema#",
				"http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2019-09/schema"}[r.IntN(3)]+`"`)
		}
	}
	add := func(odds int, format string) {
		if r.IntN(odds) == 0 {
			for strings.Contains(format, "@") {
				format = strings.Replace(format, "@", sub(), 1)
			}
			words = append(words, format)
		}
	}
	if depth == 3 || r.IntN(2) == 0 {
		add(1, `"properties":{"a":@,"b":@}`)
	} else {
		add(2, `"properties":{"c":@}`)
		add(3, `"items":@`)
		add(6, `"prefixItems":[@]`)
		add(5, `"type":["array","object"]`)
	}
	add(6, `"additionalProperties":@`)
	add(8, `"additionalProperties":false`)
	add(8, `"unevaluatedProperties":@`)
	add(8, `"patternProperties":{"^c":@}`)
	add(5, `"allOf":[@,@]`)
	add(5, `"anyOf":[@,@]`)
	add(6, `"oneOf":[@,@]`)
	add(7, `"if":@,"then":@,"else":@`)
	add(7, `"dependentSchemas":{"a":@}`)
	add(8, `"$ref":"#/$defs/d"`)
	add(8, `"not":@`)
	return "{" + strings.Join(words, ",") + "}"
}

func randomObject(r *rand.Rand, depth int) string {
	var members []string
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, randomValue(r, depth-1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomValue(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		return randomObject(r, depth)
	case n == 1 && depth > 0:
		return "[" + randomValue(r, depth-1) + "," + randomValue(r, depth-1) + "]"
	}
	return []string{`"x"`, `"y"`, `1`, `2.5`, `null`, `true`, `[]`, `{}`}[r.IntN(8)]
}

// misfit says why a value is not of a shape.
func misfit(s *condition.Shape, v any) string {
	if s == nil {
		return ""
	}
	if kindsOf(v)&s.Kinds == 0 {
		return fmt.Sprint(v, " is of another kind")
	}
	members, _ := v.(map[string]any)
	for name, member := range members {
		m, ok := s.Member(name)
		if !ok {
			return "there is no " + name
		}
		if why := misfit(m, member); why != "" {
			return name + ": " + why
		}
	}
	items, _ := v.([]any)
	for _, item := range items {
		if why := misfit(s.Items, item); why != "" {
			return "item: " + why
		}
	}
	return ""
}
