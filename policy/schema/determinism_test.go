package schema

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// again is how often what is said is asked for: the order of a map changes with every walk.
const again = 50

// TestRefusals_AreTheSameEveryTime compiles schemas of which more than one thing is wrong.
func TestRefusals_AreTheSameEveryTime(t *testing.T) {
	for _, c := range []struct{ name, schema, code, path, reason string }{
		{"two-pointers-to-nothing", `{"properties":{"b":{"$ref":"#/$defs/y"},"a":{"$ref":"#/$defs/x"}}}`,
			CodeReferenceRefused, "", unresolved.Reason},
		{"two-dialects", `{"$defs":{"b":{"$schema":"http://y/"},"a":{"$schema":"http://x/"}}}`,
			CodeReferenceRefused, "", unresolved.Reason},
		{"an-anchor-where-no-subschema-is", `{"properties":{"a":{"$ref":"#/x"},"b":{"$ref":"#y"}},"x":{"$anchor":"y"}}`,
			CodeReferenceRefused, "/x/$anchor", "only the whole schema and the schemas in its $defs may have an anchor"},
		{"a-dynamic-reference", `{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"}}`,
			CodeReferenceRefused, "/$dynamicAnchor", "dynamic references are not allowed"},
		{"a-pattern-and-a-reference", `{"x":{"pattern":"("},"properties":{"b":{"$ref":"#/x"},"a":{"$ref":"#/y"}}}`,
			CodePatternRefused, "/x/pattern", "the pattern \"(\" is not an RE2 expression: error parsing regexp: missing closing ): `(`"},
		{"two-patterns", `{"properties":{"b":{"pattern":"(b"},"a":{"pattern":"(a"}}}`,
			CodePatternRefused, "/properties/a/pattern", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
		{"two-patterns-of-names", `{"patternProperties":{"(b":{},"(a":{}}}`,
			CodePatternRefused, "/patternProperties", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
		{"two-patterns-of-names-in-draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","patternProperties":{"(b":{},"(a":{}}}`,
			CodePatternRefused, "/patternProperties", "the pattern \"(a\" is not an RE2 expression: error parsing regexp: missing closing ): `(a`"},
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
	doc := `{"a":{"aa":{"x":1},"y":{"z":1}},"b":{"x":1},"c":{"x":1},"d":{"x":1}}`
	want := []Issue{{"", "propertyNames", `has a key "aa", which does not fit propertyNames`}}
	s := mustCompile(t, `{"$defs":{"o":`+object+`},"additionalProperties":{"$ref":"#/$defs/o"}}`)
	for range again {
		var invalid *InvalidError
		if err := s.Judge([]byte(doc)); !errors.As(err, &invalid) {
			t.Fatalf("Judge(%s) = %v, want an InvalidError", doc, err)
		}
		if diff := cmp.Diff(want, invalid.Issues); diff != "" {
			t.Fatalf("issues of %s (-want +got):\n%s", doc, diff)
		}
	}
}
