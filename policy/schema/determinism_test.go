package schema

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// again is how often what is said is asked for: the order of a map changes with every walk.
const again = 200

// TestRefusals_AreTheSameEveryTime compiles schemas of which more than one thing is wrong.
func TestRefusals_AreTheSameEveryTime(t *testing.T) {
	for _, c := range []struct{ name, schema, code, path, reason string }{
		{"two-pointers-that-lead-nowhere", `{"properties":{"b":{"$ref":"#/$defs/y"},"a":{"$ref":"#/$defs/x"}}}`,
			CodeReferenceMissing, "", `the reference "#/$defs/x" leads to nothing in the schema`},
		{"two-anchors-that-nobody-has", `{"properties":{"b":{"$ref":"#y"},"a":{"$ref":"#x"}}}`,
			CodeReferenceMissing, "", `the reference "#x" leads to nothing in the schema`},
		{"a-relative-reference", `{"$ref":"nope.json#/a"}`, CodeReferenceOutside, "", `"nope.json" is outside the schema, and nothing outside is read`},
		{"no-schema", ``, CodeNotStrict, "", "there is no schema"},
		{"two-references-outside", `{"properties":{"b":{"$ref":"http://b/"},"a":{"$ref":"http://a/"}}}`,
			CodeReferenceOutside, "", `"http://a/" is outside the schema, and nothing outside is read`},
		{"one-outside-and-one-anchor", `{"properties":{"b":{"$ref":"http://b/"},"a":{"$ref":"#x"}}}`,
			CodeReferenceMissing, "", `the reference "#x" leads to nothing in the schema`},
		{"one-outside-and-one-pointer", `{"properties":{"b":{"$ref":"http://b/"},"a":{"$ref":"#/x"}}}`,
			CodeReferenceOutside, "", `"http://b/" is outside the schema, and nothing outside is read`},
		{"two-pointers-into-a-meta-schema", `{"properties":{"b":{"$ref":"http://json-schema.org/draft-07/schema#/y"},
			"a":{"$ref":"http://json-schema.org/draft-07/schema#/x"}}}`,
			CodeReferenceMissing, "", `the reference "http://json-schema.org/draft-07/schema#/x" leads to nothing in the schema`},
		{"an-identifier-where-no-subschema-is", `{"properties":{"a":{"$ref":"#/x"},"b":{"$ref":"#/x/properties/y"}},
			"x":{"$id":"http://x/","properties":{"y":{"$ref":"#/$defs/q"}},"$defs":{"q":{"type":"string"}}},"$defs":{"q":{"type":"number"}}}`,
			CodeReferenceDynamic, "/x",
			"where the references to it lead depends on the way to it: it has identifiers in a place that is no subschema's"},
		{"an-anchor-where-no-subschema-is", `{"properties":{"a":{"$ref":"#/x"},"b":{"not":{"not":{"not":{"$ref":"#p"}}}}},"x":{"$anchor":"p"}}`,
			CodeReferenceDynamic, "/x",
			"where the references to it lead depends on the way to it: it has identifiers in a place that is no subschema's"},
		{"the-order-of-a-list-stays", `{"allOf":[{"$ref":"#y"},{"$ref":"#x"}]}`,
			CodeReferenceMissing, "", `the reference "#y" leads to nothing in the schema`},
		{"an-anchor-twice", `{"$defs":{"b":{"$anchor":"x"},"a":{"$anchor":"x"}}}`,
			CodeNotASchema, "", `duplicate anchor "x" at "/$defs/a" and "/$defs/b"`},
		{"two-anchors-twice", `{"$defs":{"d":{"$anchor":"y"},"c":{"$anchor":"y"},"b":{"$anchor":"x"},"a":{"$anchor":"x"}}}`,
			CodeNotASchema, "", `duplicate anchor "x" at "/$defs/a" and "/$defs/b"`},
		{"an-identifier-twice", `{"$defs":{"b":{"$id":"http://x/"},"a":{"$id":"http://x/"}}}`,
			CodeNotASchema, "", `duplicate id "http://x/" at "/$defs/b" and "/$defs/a"`},
		{"two-dialects", `{"$defs":{"b":{"$schema":"http://y/"},"a":{"$schema":"http://x/"}}}`,
			CodeReferenceOutside, "", `"http://x/" is outside the schema, and nothing outside is read`},
		{"two-targets-that-are-no-schemas", `{"properties":{"b":{"$ref":"#/y"},"a":{"$ref":"#/x"}},"x":{"title":1},"y":{"minLength":""}}`,
			CodeNotASchema, "/title", "the schema's value is number, not string"},
		{"two-patterns", `{"properties":{"b":{"pattern":"(b"},"a":{"pattern":"(a"}}}`,
			CodePatternRefused, "/properties/a/pattern", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
		{"two-patterns-of-names", `{"patternProperties":{"(b":{},"(a":{}}}`,
			CodePatternRefused, "", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
		{"two-patterns-of-names-in-draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","patternProperties":{"(b":{},"(a":{}}}`,
			CodePatternRefused, "", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
		{"a-pattern-and-one-of-names", `{` + draft7 + `"patternProperties":{"(b":{}},"pattern":"(a","not":{"pattern":"(c"}}`,
			CodePatternRefused, "/not/pattern", "the pattern \"(c\" is not an RE2 expression: error parsing regexp: missing closing ): `(c`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range again {
				_, err := Compile([]byte(c.schema), DefaultLimits())
				if diff := cmp.Diff(error(&RefusedError{c.code, c.path, c.reason}), err); diff != "" {
					t.Fatalf("Compile(%s) (-want +got):\n%s", c.schema, diff)
				}
			}
		})
	}
}

func TestRefusals_NoPatternIsBlamedForAll(t *testing.T) {
	lim := DefaultLimits()
	lim.AllPatterns = 10
	for _, draft := range []string{"04", "07"} {
		schema := `{"$schema":"http://json-schema.org/draft-` + draft + `/schema#","patternProperties":{"aaaa":{},"bbbb":{},"cccc":{}}}`
		for range again {
			_, err := Compile([]byte(schema), lim)
			want := &RefusedError{CodePatternRefused, "", "all patterns together need more than 10 steps"}
			if diff := cmp.Diff(error(want), err); diff != "" {
				t.Fatalf("Compile(%s) (-want +got):\n%s", schema, diff)
			}
		}
	}
}

// TestIssues_OfNamesAreTheSameEveryTime judges documents with members beside the one whose name is refused.
func TestIssues_OfNamesAreTheSameEveryTime(t *testing.T) {
	object := `{"additionalProperties":true,"propertyNames":{"maxLength":1}}`
	members := `"a":{"aa":{"x":1},"y":{"z":1}},"b":{"x":1},"c":{"x":1},"d":{"x":1}`
	message := `has the key "aa", which does not fit propertyNames`
	inner := Issue{"", "maxLength", "maxLength: got 2, want 1"}
	for _, c := range []struct {
		name, schema, doc string
		want              []Issue
	}{
		{"members", `{"additionalProperties":` + object + `}`, `{` + members + `}`,
			[]Issue{inner, {"/a", "propertyNames", message}}},
		{"deeper", `{"properties":{"o":{"additionalProperties":` + object + `}}}`, `{"o":{` + members + `}}`,
			[]Issue{inner, {"/o/a", "propertyNames", message}}},
		{"through-a-reference", `{"$defs":{"o":` + object + `},"additionalProperties":{"$ref":"#/$defs/o"}}`, `{` + members + `}`,
			[]Issue{inner, {"/a", "propertyNames", message}}},
		{"items", `{"properties":{"l":{"items":` + object + `}}}`, `{"l":[{"aa":{"x":1}},{"x":1}]}`,
			[]Issue{inner, {"/l/0", "propertyNames", message}}},
	} {
		for name, compiled := range map[string]func([]byte, Limits) (*Schema, error){"closed": Compile, "open": CompileOpen} { // in any order
			t.Run(c.name+"-"+name, func(t *testing.T) {
				s, err := compiled([]byte(c.schema), DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				for range again {
					var invalid *InvalidError
					if err := s.Judge([]byte(c.doc)); !errors.As(err, &invalid) {
						t.Fatalf("Judge(%s) = %v, want an InvalidError", c.doc, err)
					}
					if diff := cmp.Diff(c.want, invalid.Issues); diff != "" {
						t.Fatalf("issues of %s (-want +got):\n%s", c.doc, diff)
					}
				}
			})
		}
	}
}

// TestResolver_SaysWhatTheCompilerSays breaks schemas at random, such as the compiler can walk in one order only: no map
// with two subschemas in it, and no two parts beside one another where it keeps parts in a map.
func TestResolver_SaysWhatTheCompilerSays(t *testing.T) {
	const schemas = 1200
	g := chainGenerator{rand.New(rand.NewPCG(6, 1))}
	refused := 0
	for i := range schemas {
		text := g.schema(i%2 == 0)
		doc, _, _, err := parse([]byte(text), DefaultLimits())
		if err != nil {
			continue
		}
		engine := &patterns{lim: DefaultLimits(), known: map[string]*pattern{}}
		if _, err = compile(documentURL, doc, engine.compile); err == nil {
			if said := newResolver(doc, DefaultLimits()).resolve(); said != nil {
				t.Errorf("of %s is said: %v; the compiler takes it", text, said)
			}
			continue
		}
		refused++
		if _, said := Compile([]byte(text), DefaultLimits()); said == nil || code(said) != CodeReferenceDynamic && said.Error() != refusal(err).Error() {
			t.Errorf("Compile(%s) = %v, the compiler says %v", text, said, refusal(err))
		}
	}
	if refused < schemas/4 || refused > schemas*9/10 {
		t.Errorf("%d of %d schemas were refused: the test sees one side only", refused, schemas)
	}
}

// TestCompile_IsTheSameEveryTime compiles random schemas in which the compiler may come to anything first.
func TestCompile_IsTheSameEveryTime(t *testing.T) {
	const (
		schemas = 300
		times   = 8
	)
	g := chainGenerator{rand.New(rand.NewPCG(6, 2))}
	for range schemas {
		text := strings.Replace(`{"properties":{"a":`+g.part(3, true)+`,"b":`+g.part(3, true)+`,"c":`+g.part(2, true)+`},"x":`+g.part(3, true)+
			`,"$defs":{"d":`+g.part(3, false)+`,"e":`+g.part(2, true)+`}}`, `,}`, `}`, 1)
		said := func() string {
			s, err := Compile([]byte(text), DefaultLimits())
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(s.Open(), s.Judge([]byte(`{"a":{"a":"a","b":[]},"b":[{"a":1}],"c":"a"}`)))
		}
		first := said()
		for range times {
			if diff := cmp.Diff(first, said()); diff != "" {
				t.Fatalf("Compile(%s) then and now:\n%s", text, diff)
			}
		}
	}
}

// chainGenerator writes schemas with references, right and wrong.
type chainGenerator struct{ *rand.Rand }

func (g chainGenerator) pick(of ...string) string { return of[g.IntN(len(of))] }

// schema has identifiers in it and one part in each part, or no identifiers and several parts.
func (g chainGenerator) schema(identified bool) string {
	dialect := g.pick("", `"$schema":"http://json-schema.org/draft-04/schema#",`, draft7,
		`"$schema":"http://json-schema.org/draft-06/schema#",`, `"$schema":"https://json-schema.org/draft/2019-09/schema",`)
	return strings.Replace(`{`+dialect+strings.TrimPrefix(g.part(4, identified), `{`), `,}`, `}`, 1)
}

func (g chainGenerator) part(depth int, identified bool) string {
	var members []string
	add := func(name, value string) { members = append(members, `"`+name+`":`+value) }
	if g.IntN(4) == 0 {
		add("$ref", g.pick(`"#"`, `"#"`, `"#/x"`, `"#/x/y"`, `"#/x/not"`, `"#/not"`, `"#p"`, `"r"`, `"r#/not"`, `"http://o/"`, `"#/%zz"`, `"#/x~2"`,
			`"http://json-schema.org/draft-07/schema"`, `"http://json-schema.org/draft-07/schema#/nope"`,
			`"http://json-schema.org/draft-07/schema#nope"`, `":"`, `"urn:x:y"`))
	}
	if identified {
		if g.IntN(4) == 0 {
			add(g.pick("$anchor", "$dynamicAnchor", "$id", "id"), g.pick(`"p"`, `"q"`, `"r"`, `"#p"`, `"r#q"`, `"#%zz"`, `"urn:x:y"`))
		}
		if g.IntN(9) == 0 {
			add("$schema", g.pick(draft04, `"http://x/"`, `"https://json-schema.org/draft/2019-09/schema"`, `"%"`))
		}
	}
	if depth == 0 || g.IntN(6) == 0 {
		if g.IntN(3) == 0 {
			add(g.pick("pattern", "title", "minLength"), g.pick(`"("`, `"a"`, `1`))
		}
		return `{` + strings.Join(members, ",") + `}`
	}
	keywords := []string{"not", "items", "additionalItems", "properties", "patternProperties", "dependencies", "contains", "propertyNames",
		"if", "then", "$defs", "dependentSchemas", "allOf", "prefixItems", "x", "definitions"}
	g.Shuffle(len(keywords), func(i, j int) { keywords[i], keywords[j] = keywords[j], keywords[i] })
	parts := 1
	if !identified {
		parts += g.IntN(2)
	}
	for _, keyword := range keywords[:parts] {
		switch inner := g.part(depth-1, identified); keyword {
		case "properties", "patternProperties", "dependencies", "$defs", "dependentSchemas", "definitions":
			add(keyword, `{"`+g.pick("a", "a/b~", "(", "%41")+`":`+inner+`}`)
		case "allOf", "prefixItems":
			add(keyword, `[`+inner+`]`)
		default:
			add(keyword, inner)
		}
	}
	return `{` + strings.Join(members, ",") + `}`
}

const draft04 = `"http://json-schema.org/draft-04/schema#"`
