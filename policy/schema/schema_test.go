package schema

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(tb testing.TB, schema string) *Schema {
	tb.Helper()
	s, err := Compile([]byte(schema), DefaultLimits())
	if err != nil {
		tb.Fatalf("Compile(%s) = %v", schema, err)
	}
	return s
}

// code gives the code of what Compile or Judge returned, or "accepted".
func code(err error) string {
	var refused *RefusedError
	var invalid *InvalidError
	switch {
	case err == nil:
		return fine
	case errors.As(err, &refused):
		return refused.Code
	case errors.As(err, &invalid):
		return invalid.Code
	}
	return "an error of another type: " + err.Error()
}

const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`

// A judgment is a document, a schema to judge it by, and what comes of it.
type judgment struct{ name, schema, doc, want string }

func judgeAll(t *testing.T, all []judgment) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if got := code(mustCompile(t, c.schema).Judge([]byte(c.doc))); got != c.want {
				t.Errorf("Judge(%s) by %s = %s, want %s", c.doc, c.schema, got, c.want)
			}
		})
	}
}

// TestJudge shows what the cases of package corpus do not: equality of items, and keys that are named in less common ways.
func TestJudge(t *testing.T) {
	judgeAll(t, []judgment{
		{"format-regex", `{` + draft7 + `"properties":{"a":{"format":"regex"}}}`, `{"a":"^(x"}`, CodeInvalid},
		{"unique-items-equal-numbers", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,{"b":1,"c":2},1.0]}`, CodeInvalid},
		{"unique-items-signs", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,-1,"1",[1],true,false,null,"null"]}`, fine},
		{"unique-items-split-text", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[["ab","c"],["a","bc"],["abc"]]}`, fine},
		{"said-by-const", `{"const":{"a":1}}`, `{"a":1}`, fine},
		{"said-by-enum-nested", `{"properties":{"a":{"enum":[{"b":1}]}}}`, `{"a":{"b":1}}`, fine},
		{"unnamed-key-in-draft-07-tuple", `{` + draft7 + `"properties":{"a":{"items":[{}],
			"additionalItems":{"properties":{"b":{}}}}}}`, `{"a":[1,{"c":1}]}`, CodeInvalid},
		{"draft-07-siblings-of-ref-name-nothing", `{` + draft7 + `"definitions":{"A":{"properties":{"s":{}}}},
			"properties":{"a":{"$ref":"#/definitions/A","properties":{"t":{}}}}}`, `{"a":{"t":1}}`, CodeInvalid},
		{"draft-07-definitions-under-defs", `{` + draft7 + `"$defs":{"A":{"properties":{"s":{}}}},
			"properties":{"a":{"$ref":"#/$defs/A"}}}`, `{"a":{"s":1}}`, fine},
		{"draft-04-all-of", `{"$schema":"http://json-schema.org/draft-04/schema#","allOf":[{"properties":{"a":{}}},
			{"properties":{"b":{}}}]}`, `{"a":1,"b":2}`, fine},
		{"draft-04-all-of-unnamed", `{"$schema":"http://json-schema.org/draft-04/schema#","allOf":[{"properties":{"a":{}}}]}`,
			`{"a":1,"b":2}`, CodeInvalid},
	})
}

// TestClosedWorldOfSharedValues shows which keys are named where several subschemas share a value.
func TestClosedWorldOfSharedValues(t *testing.T) {
	judgeAll(t, []judgment{
		{"key-of-the-other-branch", `{"oneOf":[{"properties":{"k":{"const":1},"a":{}}},{"properties":{"k":{"const":2},
			"b":{}}}]}`,
			`{"k":1,"b":1}`, CodeInvalid},
		{"closing-does-not-decide-one-of", // the first branch fails only in a closed world: by the schema both fit
			`{"oneOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"x":{},"y":{}}}}}]}`,
			`{"a":{"x":1,"y":1}}`, CodeInvalid},
		{"closing-does-not-decide-not", `{"properties":{"a":{}},"not":{"properties":{"a":{"properties":{"x":{}}}}}}`,
			`{"a":{"y":1}}`, CodeInvalid},
		{"closing-does-not-decide-if",
			`{"properties":{"a":{},"b":{}},"if":{"properties":{"a":{"properties":{"x":{}}}}},"then":{"required":["b"]}}`,
			`{"a":{"y":1}}`, CodeInvalid},
	})
}

// TestClosedWorldOfConditions shows what if, contains and recursive references name.
func TestClosedWorldOfConditions(t *testing.T) {
	judgeAll(t, []judgment{
		{"if-names-a-plain-key", `{"properties":{"b":{}},"if":{"properties":{"k":{"const":1}}},"then":{"required":["b"]}}`,
			`{"k":1,"b":1}`, fine},
		{"if-alone-names-no-object", `{"properties":{"b":{}},"if":{"properties":{"k":{"properties":{"x":{}}}}}}`,
			`{"k":{"y":1}}`, CodeInvalid},
		{"if-alone-names-no-array", `{"properties":{"b":{}},"if":{"allOf":[{"properties":{"k":{"type":"array"}}}]}}`,
			`{"k":[{"y":1}]}`, CodeInvalid},
		{"if-says-nothing-of-other-keys", `{"properties":{"b":{}},"if":{"additionalProperties":true}}`, `{"k":1}`,
			CodeInvalid},
		{"if-on-a-key-that-properties-name",
			`{"properties":{"a":{"properties":{"x":{},"y":{}}}},"if":{"properties":{"a":{"properties":{"x":{"const":1}}}}}}`,
			`{"a":{"x":1,"y":1}}`, fine},
		{"contains-alone-describes-no-item",
			`{"properties":{"a":{"contains":{"properties":{"x":{}}},"unevaluatedItems":false}}}`, `{"a":[{"y":1}]}`,
			CodeInvalid},
		{"contains-moved-still-counts",
			`{"properties":{"a":{"contains":{"properties":{"x":{"const":1}}},"minContains":2,
				"unevaluatedItems":{"properties":{"x":{}}}}}}`,
			`{"a":[{"x":1},{"x":2}]}`, CodeInvalid},
		{"draft-07-dependency-names-keys", `{` + draft7 + `"properties":{"a":{}},
			"dependencies":{"a":{"properties":{"b":{}}},"b":["a"]}}`,
			`{"a":1,"b":1}`, fine},
		{"cousins-do-not-know-of-one-another",
			`{"allOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"y":{}}}}}]}`,
			`{"a":{"x":1,"y":1}}`, CodeInvalid},
	})
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ name, schema, want, path string }{
		{"properties-as-list", `{"properties":[]}`, CodeNotASchema, "/properties"},
		{"unknown-dialect", `{"$schema":"http://json-schema.org/draft-03/schema#"}`, CodeDialectUnknown, "/$schema"},
		{"dialect-that-is-no-string", `{"$schema":7}`, CodeDialectUnknown, "/$schema"},
		{"reference-to-nothing", `{"$ref":"#/$defs/a"}`, CodeReferenceRefused, ""},
		{"reference-to-no-anchor", `{"$ref":"#a"}`, CodeReferenceRefused, ""},
		{"lookahead", `{"properties":{"a":{"pattern":"(?=x)"}}}`, CodePatternRefused, "/properties/a/pattern"},
		{"count-beyond-64-bits", `{"properties":{"a":{"minLength":9223372036854775808}}}`, CodeNumberTooLarge,
			"/properties/a/minLength"},
		{"cycle-names-the-place", `{"properties":{"a/b%":{"$ref":"#/properties/a~1b%25"}}}`, CodeReferenceCycle,
			"/properties/a~1b%"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile([]byte(c.schema), DefaultLimits())
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != c.want || refused.Path != c.path {
				t.Errorf("Compile(%s) = %v, want %s at %q", c.schema, err, c.want, c.path)
			}
		})
	}
}

func TestDialect(t *testing.T) {
	for url, want := range map[string]string{
		"http://json-schema.org/draft-04/schema#":      "draft-04",
		"http://json-schema.org/draft-06/schema#":      "draft-06",
		"http://json-schema.org/draft-07/schema":       "draft-07",
		"https://json-schema.org/draft-07/schema#":     "draft-07",
		"https://json-schema.org/draft/2019-09/schema": "2019-09",
		"https://json-schema.org/draft/2020-12/schema": "2020-12",
	} {
		if got := mustCompile(t, `{"$schema":"`+url+`"}`).Dialect(); got != want {
			t.Errorf("Dialect() of %s = %s, want %s", url, got, want)
		}
	}
	if got := mustCompile(t, `{}`).Dialect(); got != "2020-12" {
		t.Errorf("Dialect() without $schema = %s, want 2020-12", got)
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"none", `{"properties":{"a":{"type":"string"},"b":{"properties":{"c":{"type":"null"}}}}}`, nil},
		{"top-level-is-closed", `{"type":"object"}`, nil},
		{"object-without-names", `{"properties":{"z":{"type":"object"},"a":{"type":["object","null"]}}}`,
			[]string{"/properties/a", "/properties/z"}},
		{"anything", `{"properties":{"a":{},"b":true,"c":{"title":"c"},"d":false}}`,
			[]string{"/properties/a", "/properties/b", "/properties/c"}},
		{"items", `{"properties":{"a":{"type":"array","items":{"type":"object"}}}}`, []string{"/properties/a/items"}},
		{"said-in-words", `{"properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, nil},
		{"through-ref", `{"properties":{"a":{"$ref":"#/$defs/o"},"b":{"$ref":"#/$defs/s"}},
			"$defs":{"o":{"type":"object"},"s":{"type":"string"}}}`, []string{"/properties/a"}},
		{"a-branch-is-an-object", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"object"}]}}}`,
			[]string{"/properties/a"}},
		{"array-without-items", `{"properties":{"a":{"type":"array"},"b":{"type":"array","items":{"type":"string"}}}}`,
			[]string{"/properties/a"}},
		{"tuple-with-a-rest", `{"properties":{"a":{"type":"array","prefixItems":[{"type":"null"}]},
			"b":{"type":"array","prefixItems":[{"type":"null"}],"items":false}}}`, []string{"/properties/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mustCompile(t, c.schema).Open()); diff != "" {
				t.Errorf("Open() of %s (-want +got):\n%s", c.schema, diff)
			}
		})
	}
}

func TestIssues(t *testing.T) {
	for _, c := range []struct {
		name, schema, doc string
		want              []Issue
	}{
		{"unnamed-keys-escaped", `{"properties":{"a":{}}}`, `{"z":1,"b\u202e\u001b[31m":2}`, []Issue{
			{"", "additionalProperties", `has keys that the schema does not name: "b\u202e\x1b[31m", "z"`}}},
		{"place-first", `{"properties":{"b":{"type":"string"},"a":{"minimum":3}}}`, `{"b":1,"a":2.5}`, []Issue{
			{"/a", "minimum", "is 2.5, less than 3"}, {"/b", "type", "is number, not string"}}},
		{"only-what-matters", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"b":{},
			"c":{"type":"null"}}}}}`,
			`{"a":{"b":1,"c":1}}`, []Issue{{"/a/c", "type", "is number, not null"}}},
		{"enum", `{"properties":{"a":{"enum":["x",null,1.50]}}}`, `{"a":"y\u0007"}`, []Issue{
			{"/a", "enum", `is "y\a", not one of "x", null, 1.50`}}},
		{"alternatives", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, []Issue{
			{"/a", "anyOf", "fits none of the alternatives"}, {"/a", "type", "is number, not null"},
			{"/a", "type", "is number, not string"}}},
		{"pattern", `{"properties":{"a":{"pattern":"^x"}}}`, `{"a":"y"}`, []Issue{
			{"/a", "pattern", `is "y", which does not match "^x"`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mustCompile(t, c.schema).Judge([]byte(c.doc))
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Judge(%s) = %v, want an InvalidError", c.doc, err)
			}
			if diff := cmp.Diff(c.want, invalid.Issues); diff != "" {
				t.Errorf("issues of %s (-want +got):\n%s", c.doc, diff)
			}
		})
	}
}

// TestIssuesAreBounded holds messages to their limits, and to being the same every time: the validator walks maps.
func TestIssuesAreBounded(t *testing.T) {
	s := mustCompile(t, `{"properties":{`+many(100, `"p%03d":{"type":"string"}`, ",")+`}}`)
	doc := `{` + many(100, `"p%03d":1`, ",") + `,"` + strings.Repeat("\u202e", 10_000) + `":1}`
	first := s.Judge([]byte(doc))
	var invalid *InvalidError
	if !errors.As(first, &invalid) || len(invalid.Issues) != MaxIssues || invalid.More != 101-MaxIssues {
		t.Fatalf("Judge = %v, want %d issues and %d more", first, MaxIssues, 101-MaxIssues)
	}
	for _, issue := range invalid.Issues {
		if len(issue.Message) > 2*maxMessage || strings.ContainsRune(issue.String(), '\u202e') {
			t.Errorf("the message of %q is not bounded and escaped", issue)
		}
	}
	for range 20 {
		if diff := cmp.Diff(first.Error(), s.Judge([]byte(doc)).Error()); diff != "" {
			t.Fatalf("the same document has other issues:\n%s", diff)
		}
	}
}

func TestZeroValuesDeny(t *testing.T) {
	if got := code(new(Schema).Judge([]byte(`{}`))); got != CodeNoSchema {
		t.Errorf("the zero Schema: Judge({}) = %s, want %s", got, CodeNoSchema)
	}
	if got := code((*Schema)(nil).Judge([]byte(`{}`))); got != CodeNoSchema {
		t.Errorf("no Schema: Judge({}) = %s, want %s", got, CodeNoSchema)
	}
	if _, err := Compile([]byte(`{}`), Limits{}); code(err) != CodeTooLarge {
		t.Errorf("Compile({}, no limits) = %v, want %s", err, CodeTooLarge)
	}
}

// TestLimits holds each limit to what it says: a schema or document at the limit passes, one past it does not.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         func(*Limits, int)
		limit       int
		schema, doc string
		want        string
	}{
		{"bytes", func(l *Limits, n int) { l.Bytes = n }, 17, `{"type":"object"}`, `{}`, CodeTooLarge},
		{"depth", func(l *Limits, n int) { l.Depth = n }, 3, `{"allOf":[{}]}`, `{}`, CodeTooDeep},
		{"values", func(l *Limits, n int) { l.Values = n }, 4, `{"examples":["a","b"]}`, `{}`, CodeTooLarge},
		{"subschemas", func(l *Limits, n int) { l.Subschemas = n }, 3, `{"properties":{"a":true}}`, `{}`, CodeTooLarge},
		{"refs", func(l *Limits, n int) { l.Refs = n }, 1, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{}`, CodeTooLarge},
		{"pointer-bytes", func(l *Limits, n int) { l.PointerBytes = n }, 22, `{"title":"","description":"","$id":""}`, `{}`,
			CodeTooLarge},
		{"pattern-bytes", func(l *Limits, n int) { l.PatternBytes = n }, 5, `{"pattern":"abcde"}`, `{}`, CodePatternRefused},
		{"pattern-steps", func(l *Limits, n int) { l.PatternSteps = n }, 5, `{"pattern":"abcde"}`, `{}`, CodePatternRefused},
		{"all-patterns", func(l *Limits, n int) { l.AllPatterns = n }, 4,
			`{"properties":{"a":{"pattern":"ab"},"b":{"pattern":"cd"}}}`,
			`{}`, CodePatternRefused},
		{"chain", func(l *Limits, n int) { l.Chain = n }, 4, `{"allOf":[{"allOf":[{"type":"object"}]}]}`, `{}`,
			CodeExpansionTooLarge},
		{"expansion", func(l *Limits, n int) { l.Expansion = n }, 4, `{"allOf":[{"minProperties":0},{"maxProperties":0}]}`,
			`{}`,
			CodeExpansionTooLarge},
		{"number-bytes", func(l *Limits, n int) { l.NumberBytes = n }, 3, `{"maximum":100}`, `{}`, CodeNumberTooLarge},
		{"exponent", func(l *Limits, n int) { l.Exponent = n }, 30, `{"maximum":1e30}`, `{}`, CodeNumberTooLarge},
		{"exponent-negative-document", func(l *Limits, n int) { l.Exponent = n }, 30, `{"additionalProperties":true}`,
			`{"a":1E-30}`, CodeDocumentNumber},
		{"doc-depth", func(l *Limits, n int) { l.DocDepth = n }, 2, `{"additionalProperties":true}`, `{"a":[1]}`,
			CodeDocumentTooDeep},
		{"doc-work", func(l *Limits, n int) { l.DocWork, l.DocWorkPerByte = n, 0 }, 3*costNode + 1,
			`{"properties":{"a":{"type":"null"}},"required":["a"]}`, `{"a":null}`, CodeDocumentTooCostly},
	} {
		t.Run(c.name, func(t *testing.T) {
			for limit, want := range map[int]string{c.limit: fine, c.limit - 1: c.want} {
				lim := DefaultLimits()
				c.set(&lim, limit)
				s, err := Compile([]byte(c.schema), lim)
				if err == nil {
					err = s.Judge([]byte(c.doc))
				}
				if got := code(err); got != want {
					t.Errorf("with the limit %d: %s, want %s (%v)", limit, got, want, err)
				}
			}
		})
	}
}

// TestLegitimateRecursion judges shallow documents by recursive schemas of the kinds that tools have.
func TestLegitimateRecursion(t *testing.T) {
	filter := `{"$defs":{"F":{"anyOf":[` + many(12,
		`{"properties":{"kind%d":{"type":"string"}},"additionalProperties":false}`, ",") +
		`,{"properties":{"and":{"type":"array","items":{"$ref":"#/$defs/F"}}},"required":["and"]},
		{"properties":{"or":{"type":"array","items":{"$ref":"#/$defs/F"}}},"required":["or"]}]}},
		"properties":{"filter":{"$ref":"#/$defs/F"}}}`
	for _, c := range []struct{ name, schema, doc string }{
		{"filter-of-filters", filter, `{"filter":{"and":[{"or":[{"and":[{"or":[{"kind1":"a"},{"kind2":"b"}]}]}]},
			{"kind11":"c"}]}}`},
		{"long-table", `{"properties":{"rows":{"items":{"properties":{"id":{"type":"integer"},"name":{"type":"string"}}}}}}`,
			`{"rows":[` + many(200_000, `{"id":%d,"name":"a name"}`, ",") + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := mustCompile(t, c.schema).Judge([]byte(c.doc)); err != nil {
				t.Errorf("Judge = %v, want nil", err)
			}
		})
	}
}

// TestConcurrentUse is for the race detector; format: regex compiles while documents are judged.
func TestConcurrentUse(t *testing.T) {
	s := mustCompile(t, `{`+draft7+`"properties":{"a":{"format":"regex","pattern":"x"},"b":{"uniqueItems":true}}}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				doc := fmt.Sprintf(`{"a":"x{%d}","b":[%d,%d]}`, j, i, j)
				if err := s.Judge([]byte(doc)); (err == nil) != (i != j) {
					t.Errorf("Judge(%s) = %v", doc, err)
				}
			}
		})
	}
	wg.Wait()
}
