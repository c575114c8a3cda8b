package schema

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/internal/test/check"
)

// seeds are schemas and documents that between them use every part of the gate; f.Fuzz starts from them.
var seeds = []struct{ schema, doc string }{
	{plainSchema, plainArguments},
	{`{"oneOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"y":{}}}}}]}`,
		`{"a":{"x":1}}`},
	{`{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}},"$defs":{"A":{"properties":{"b":{}}}}}`,
		`{"a":{"b":[]}}`},
	{`{"$schema":"http://json-schema.org/draft-04/schema#",
		"definitions":{"n":{"properties":{"k":{"items":{"$ref":"#/definitions/n"}}}}},
		"allOf":[{"$ref":"#/definitions/n"}]}`, `{"k":[{"k":[]}]}`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","if":{"properties":{"k":{"const":1}}},
		"then":{"properties":{"b":{}}},
		"else":{"properties":{"c":{"not":{"properties":{"d":{}}}}}},"properties":{"k":{}}}`, `{"k":1,"b":2}`},
	{`{"properties":{"u":{"uniqueItems":true,"items":{"multipleOf":0.5}}},
		"unevaluatedProperties":{"properties":{"v":{}}}}`,
		`{"u":[1,1.5],"w":{"v":null}}`},
	{`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, `[[[[]]]]`},
	{`{"dependentSchemas":{"a":{"properties":{"b":{}}}},"dependencies":{"b":{"properties":{"c":{}}}},
		"propertyNames":{"maxLength":3}}`,
		`{"a":1,"b":2}`},
}

// FuzzCompile never panics and never hangs, and what it accepts the validator accepts by the schema as written.
func FuzzCompile(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed.schema, seed.doc)
	}
	f.Fuzz(func(t *testing.T, schema, doc string) { holds(t, schema, doc) })
}

// holds judges doc by schema, checks what must be true of any verdict, and returns the verdict.
func holds(t *testing.T, schema, doc string) string {
	t.Helper()
	s, err := Compile([]byte(schema), DefaultLimits())
	if err != nil {
		if got := code(err); got == fine || err.(*RefusedError).Reason == "" {
			t.Errorf("Compile(%s) = %#v: an error without code or reason", schema, err)
		}
		return code(err)
	}
	err = s.Judge([]byte(doc))
	if again := s.Judge([]byte(doc)); fmt.Sprint(again) != fmt.Sprint(err) {
		t.Errorf("Judge(%s) by %s = %v, and again %v", doc, schema, err, again)
	}
	if err == nil {
		judge, bareErr := bare([]byte(schema), jsonschema.Draft2020)
		if bareErr == nil {
			bareErr = judge([]byte(doc))
		}
		if bareErr != nil {
			t.Errorf("Judge(%s) by %s = nil, the validator by the schema as written says %v", doc, schema, bareErr)
		}
	}
	return code(err)
}

// A generator writes schemas in which every object names keys and none says that more may come, and documents that
// are likely to fit them.
type generator struct {
	*rand.Rand
	dialect string
}

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) key() string { return g.pick("a", "b", "c") }

// object is a schema that names keys, with or without in-place parts.
func (g generator) object(depth int) string {
	parts := []string{fmt.Sprintf(`"properties":{%q:%s,"k":{"enum":[%d]}}`, g.key(), g.value(depth-1), g.IntN(2))}
	if depth > 0 {
		for range g.IntN(3) {
			one, two := g.object(depth-1), g.object(depth-1)
			parts = append(parts, g.pick(
				fmt.Sprintf(`"allOf":[%s,%s]`, one, two),
				fmt.Sprintf(`"anyOf":[%s,%s]`, one, two),
				fmt.Sprintf(`"oneOf":[%s,%s]`, one, two),
				fmt.Sprintf(`"not":%s`, one),
				fmt.Sprintf(`"if":%s,"then":%s,"else":%s`, one, two, one),
				fmt.Sprintf(`"dependencies":{%q:%s}`, g.key(), one),
				fmt.Sprintf(`"patternProperties":{"^%s":%s}`, g.key(), g.value(depth-1)),
				fmt.Sprintf(`"required":[%q]`, g.key()),
				`"$ref":"#/definitions/shared"`,
			))
		}
	}
	seen := map[string]bool{} // of two parts with one keyword the first stays
	var kept []string
	for _, part := range parts {
		if name, _, _ := strings.Cut(part, ":"); !seen[name] {
			seen[name] = true
			kept = append(kept, part)
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

func (g generator) value(depth int) string {
	if depth <= 0 {
		return g.pick(`{"type":"integer"}`, `{"type":["string","null"]}`, `{"enum":[1,"x"]}`)
	}
	switch g.IntN(4) {
	case 0:
		return `{"type":"array","items":` + g.value(depth-1) + `}`
	case 1:
		return `{"type":"object",` + g.object(depth)[1:]
	case 2:
		return `{"$ref":"#/definitions/shared"}`
	}
	return g.value(0)
}

func (g generator) schema() string {
	return fmt.Sprintf(`{"$schema":%q,"definitions":{"shared":{"type":"object","properties":{"a":{"type":"integer"},
		"c":%s}}},%s`,
		g.dialect, g.value(0), g.object(3)[1:])
}

// doc writes an object; stray says with what probability an object takes a key that no schema names.
func (g generator) doc(depth int, stray float64) string {
	members := map[string]string{}
	for range g.IntN(4) {
		key := g.pick("a", "b", "c", "k")
		switch {
		case depth > 0 && g.IntN(2) == 0:
			members[key] = g.doc(depth-1, stray)
		case depth > 0 && g.IntN(4) == 0:
			members[key] = "[" + g.doc(depth-1, stray) + "]"
		default:
			members[key] = g.pick("0", "1", `"x"`, "null", "[]", "{}")
		}
	}
	var parts []string
	for _, key := range []string{"a", "b", "c", "k"} {
		if v, ok := members[key]; ok {
			parts = append(parts, fmt.Sprintf("%q:%s", key, v))
		}
	}
	if g.Float64() < stray {
		parts = append(parts, `"zz":`+g.pick("0", "null", "{}"))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestClosedWorldOnRandomSchemas holds random schemas of every dialect to the two promises of the closed world: what
// is accepted is valid by the schema as written, and an unnamed key is accepted at no depth.
func TestClosedWorldOnRandomSchemas(t *testing.T) {
	const schemas, docs = 150, 20
	accepted, stray := 0, 0
	for _, d := range suiteDrafts {
		g := generator{rand.New(rand.NewPCG(1, 2)), d.schema}
		for range schemas {
			schema := g.schema()
			s, err := Compile([]byte(schema), DefaultLimits())
			if err != nil {
				t.Fatalf("Compile(%s) = %v", schema, err)
			}
			judge, err := bare([]byte(schema), d.draft)
			check.NoError(t, err)
			for i := range docs {
				doc := g.doc(3, float64(i%2)*0.3)
				strayed := strings.Contains(doc, `"zz"`)
				err := s.Judge([]byte(doc))
				if strayed {
					stray++
				}
				if err != nil {
					continue
				}
				accepted++
				if strayed {
					t.Errorf("Judge(%s) by %s = nil, want the key zz refused", doc, schema)
				}
				if err := judge([]byte(doc)); err != nil {
					t.Errorf("Judge(%s) by %s = nil, the schema as written says %v", doc, schema, err)
				}
			}
		}
	}
	t.Logf("%d documents accepted, %d had an unnamed key", accepted, stray)
	if accepted < 1000 || stray < 1000 {
		t.Errorf("%d documents accepted and %d with an unnamed key: too few to show anything", accepted, stray)
	}
}

// TestOriginalIsNeeded shows that the random test could fail: without the schema as written, closing a branch of oneOf
// makes a document acceptable that fits both branches.
func TestOriginalIsNeeded(t *testing.T) {
	const schema = `{"oneOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"x":{},
		"y":{}}}}}]}`
	const doc = `{"a":{"x":1,"y":1}}`
	s := mustCompile(t, schema)
	if s.original == nil {
		t.Fatal("a schema with oneOf is judged by the closed world alone")
	}
	s.original = nil
	if err := s.Judge([]byte(doc)); err != nil {
		t.Errorf("the closed world alone: Judge(%s) = %v, want nil", doc, err)
	}
}
