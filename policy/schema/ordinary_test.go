package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// strictly is a schema without the quick way: the validator is asked about every document.
func strictly(s *Schema) *Schema {
	c := *s
	c.ordinary = nil
	return &c
}

// agree holds the quick way to the validator, and reports whether it decided.
func agree(t *testing.T, s *Schema, doc string) bool {
	t.Helper()
	budget := uint64(max(0, s.lim.DocWork)) + uint64(max(0, s.lim.DocWorkPerByte))*uint64(len(doc))
	if !s.ordinary.admits([]byte(doc), budget) {
		return false
	}
	if err := strictly(s).Judge([]byte(doc)); err != nil {
		t.Errorf("%s is admitted by %+v, and the validator says %v", doc, s.ordinary, err)
	}
	return true
}

// What a schema may say of one member, of the whole, and what a document may hold.
var (
	memberSchemas = []string{
		`{"type":"string"}`, `{"type":"string","minLength":2,"maxLength":3}`, `{"minLength":2}`, `{"type":["string","null"]}`, `{"type":"integer"}`,
		`{"type":"number"}`, `{"type":"boolean"}`, `{"type":"null"}`, `{"type":"object"}`, `{"type":"array"}`, `{}`, `true`, `false`,
		`{"enum":["a","é",1,null]}`, `{"enum":["a"],"type":"integer"}`, `{"enum":[1,true]}`, `{"const":"a"}`, `{"type":"string","pattern":"^a"}`,
		`{"format":"date"}`,
		`{"minimum":1}`, `{"multipleOf":2}`, `{"not":{"type":"string"}}`, `{"allOf":[{"maxLength":1}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`{"$ref":"#/definitions/word"}`, `{"title":"T","description":"D","default":7,"examples":[1],"type":"string"}`, `{"if":{"type":"string"},"then":false}`,
	}
	wholeSchemas = []string{
		`"type":"object"`, `"type":"object","additionalProperties":false`, `"additionalProperties":true`, `"additionalProperties":{"type":"null"}`,
		`"type":["object","null"],"required":["a"]`, `"type":"string"`, `"required":["b","a"]`, `"required":["c"]`, `"minProperties":2`, `"maxProperties":1`,
		`"propertyNames":{"maxLength":0}`, `"patternProperties":{"^a":{"type":"null"}}`, `"dependentRequired":{"a":["b"]}`, `"allOf":[{"required":["b"]}]`,
		`"not":{"required":["b"]}`, `"$schema":"http://json-schema.org/draft-04/schema#"`, `"$schema":"http://json-schema.org/draft-07/schema#","required":["a"]`,
		`"enum":[{}]`, `"unevaluatedProperties":false`, `"oneOf":[{"required":["a"]},{"required":["b"]}]`, `"if":{"required":["a"]},"then":{"required":["b"]}`,
	}
	memberValues = []string{
		`""`, `"a"`, `"ab"`, `"abcd"`, `"é"`, `"日本"`, `"日本語語"`, `"a\n"`, `"\"\\\b\f"`, `"\u0061"`, `"\/"`,
		"\"\xff\"", "\"\x01\"", "\"\x7f\"", `0`, `-0`, `-`, `1`,
		`01`, `1.0`, `1e3`, `9007199254740993`, `1234567890123456789`, `12345678901234567890`, `true`, `false`, `null`, `nul`, `{}`, `[]`, `"`, ``,
	}
	documents = []string{
		`{"a":%s}`, `{"b":%s}`, `{"a":%[1]s,"b":%[1]s}`, `{"b":%[1]s,"a":%[1]s}`, `{"a":%[1]s,"a":%[1]s}`, `{"a": %s}`,
		`{"a":%s} `, `{"a":%s}x`, `{"a":%s,}`, `{"\u0061":%s}`,
		`{"a":%s,"z":1}`, `{"A":%s}`, `%s`, `{"a":%s`, `[%s]`, `{}`,
	}
)

func TestOrdinary_AgreesWithTheValidator(t *testing.T) {
	decided, schemas := 0, 0
	for i, whole := range wholeSchemas {
		for j, member := range memberSchemas {
			other := memberSchemas[(i+j)%len(memberSchemas)]
			s, err := Compile([]byte(`{`+whole+`,"properties":{"a":`+member+`,"b":`+other+`},"definitions":{"word":{"type":"string"}}}`), DefaultLimits())
			if err != nil {
				continue // a boolean schema in draft 4
			}
			if s.ordinary == nil {
				continue
			}
			schemas++
			for _, value := range memberValues {
				for _, doc := range documents {
					if strings.Contains(doc, "%") {
						doc = fmt.Sprintf(doc, value)
					}
					if agree(t, s, doc) {
						decided++
					}
				}
			}
		}
	}
	if schemas < 100 || decided < 3000 {
		t.Errorf("%d schemas are ordinary, and %d documents are decided by them: too few", schemas, decided)
	}
}

func TestOrdinary_WhatIsDecided(t *testing.T) {
	const echo = `{"type":"object","properties":{"message":{"type":"string","maxLength":8}},"required":["message"],"additionalProperties":false}`
	for _, tc := range []struct {
		name, schema, doc string
		want              bool
	}{
		{"short-call", echo, `{"message":"hello"}`, true},
		{"at-its-length", echo, `{"message":"éééééééé"}`, true},
		{"past-its-length", echo, `{"message":"ééééééééé"}`, false},
		{"escapes-count-once", echo, `{"message":"\n\n\n\n\n\n\n\n"}`, true},
		{"missing", echo, `{}`, false},
		{"unknown-member", echo, `{"message":"a","other":1}`, false},
		{"unknown-member-first", echo, `{"a":1,"message":"a"}`, false},
		{"nothing-is-asked", `{"type":"object"}`, `{}`, true},
		{"open-in-words", `{"type":"object","additionalProperties":true}`, `{}`, false},
		{"eight-arguments-with-a-pattern", plainSchema, plainArguments, false},
		{"three-of-eight-arguments", plainSchema, `{"archived":true,"author":null,"order":"newest"}`, false},
		{"optional-members-left-out", `{"properties":{"a":{},"b":{"type":"null"},"c":{"pattern":"x"}}}`, `{"b":null}`, true},
		{"one-that-says-more", `{"properties":{"a":{},"b":{"type":"null"},"c":{"pattern":"x"}}}`, `{"b":null,"c":"x"}`, false},
		{"nested", `{"properties":{"a":{"type":"object"}}}`, `{"a":{}}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Compile([]byte(tc.schema), DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if got := agree(t, s, tc.doc); got != tc.want {
				t.Errorf("it is decided: %v, want %v", got, tc.want)
			}
		})
	}
}

// The budget holds for ordinary documents too, and so do the limits of depth and of numbers.
func TestOrdinary_KeepsToTheLimits(t *testing.T) {
	schema := []byte(`{"properties":{"a":{"type":["string","integer"]}}}`)
	for _, tc := range []struct {
		name   string
		doc    string
		change func(*Limits)
	}{
		{"work", `{"a":"text"}`, func(l *Limits) { l.DocWork, l.DocWorkPerByte = 1, 0 }},
		{"number", `{"a":12345}`, func(l *Limits) { l.NumberBytes = 4 }},
		{"depth", `{"a":"text"}`, func(l *Limits) { l.DocDepth = 0 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			usual, err := Compile(schema, DefaultLimits())
			if err != nil || !agree(t, usual, tc.doc) {
				t.Fatalf("with the usual limits it is not decided (%v)", err)
			}
			lim := DefaultLimits()
			tc.change(&lim)
			s, err := Compile(schema, lim)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.Judge([]byte(tc.doc)), strictly(s).Judge([]byte(tc.doc)); got == nil || want == nil || got.Error() != want.Error() {
				t.Errorf("Judge = %v, and %v by the validator; want the same refusal", got, want)
			}
		})
	}
}

// Each field of a node is known to say nothing, is judged, or makes the schema one for the validator.
func TestOrdinary_EveryFieldOfANodeCounts(t *testing.T) {
	fields := reflect.VisibleFields(reflect.TypeFor[node]())
	names := make([]string, 0, len(fields))
	for i, f := range fields {
		names = append(names, f.Name)
		if !f.IsExported() {
			continue
		}
		var n node
		set := reflect.ValueOf(&n).Elem().Field(i)
		switch f.Type.Kind() {
		case reflect.Map:
			set.Set(reflect.MakeMap(f.Type))
			set.SetMapIndex(reflect.Zero(f.Type.Key()), reflect.Zero(f.Type.Elem()))
		case reflect.Slice:
			set.Set(reflect.MakeSlice(f.Type, 1, 1))
		case reflect.Pointer:
			set.Set(reflect.New(f.Type.Elem()))
		case reflect.Interface:
			if f.Type.NumMethod() > 0 {
				set.Set(reflect.ValueOf(&pattern{}))
				break
			}
			set.Set(reflect.ValueOf(true))
		case reflect.Bool:
			set.SetBool(true)
		case reflect.Int:
			set.SetInt(1)
		case reflect.String:
			set.SetString("x")
		default:
			t.Fatalf("%s is a %s: say how to set it", f.Name, f.Type)
		}
		if got, want := saysOnly(&n), slices.Contains(speechless, f.Name); got != want {
			t.Errorf("a node with %s says nothing: %v, want %v", f.Name, got, want)
		}
		if !saysOnly(&n, f.Name) {
			t.Errorf("a node with nothing but %s says more than that", f.Name)
		}
	}
	for _, name := range speechless {
		if !slices.Contains(names, name) {
			t.Errorf("a node has no %s", name)
		}
	}
}

func FuzzOrdinary(f *testing.F) {
	for _, schema := range []string{plainSchema, `{"properties":{"a":{"type":"string","maxLength":3},"b":{"type":"integer"}},"required":["a"]}`} {
		for _, doc := range []string{plainArguments, `{"a":"é\n","b":-0}`, `{"a":"\u0061"}`, `{}`} {
			f.Add(schema, doc)
		}
	}
	f.Fuzz(func(t *testing.T, schema, doc string) {
		if s, err := Compile([]byte(schema), DefaultLimits()); err == nil {
			agree(t, s, doc)
		}
	})
}
