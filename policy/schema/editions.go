package schema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An edition is what a survey knows of a dialect.
type edition struct {
	year    int // of the draft; before 2019 its number
	url     string
	idName  string
	one     []string // keywords whose value is a subschema
	named   []string // keywords whose value's members are
	ordered []string // keywords whose value's items are
}

// editions are the dialects by name, oldest first: each has the keywords of the one before it.
var editions = func() map[string]*edition {
	e := edition{4, "http://json-schema.org/draft-04/schema", "id",
		[]string{"not", "additionalProperties", "items", "additionalItems"},
		[]string{"definitions", "properties", "patternProperties", "dependencies"},
		[]string{"allOf", "anyOf", "oneOf", "items"}}
	all := map[string]*edition{}
	next := func(name string, year int, url, idName string, one, named, ordered []string) {
		e = edition{year, url, idName, slices.Concat(e.one, one), slices.Concat(e.named, named), slices.Concat(e.ordered, ordered)}
		copied := e
		all[name] = &copied
	}
	next("draft-04", 4, e.url, "id", nil, nil, nil)
	next("draft-06", 6, "http://json-schema.org/draft-06/schema", "$id", []string{"propertyNames", "contains"}, nil, nil)
	next("draft-07", 7, "http://json-schema.org/draft-07/schema", "$id", []string{"if", "then", "else"}, nil, nil)
	next("2019-09", 2019, "https://json-schema.org/draft/2019-09/schema", "$id",
		[]string{"unevaluatedProperties", "unevaluatedItems", "contentSchema"}, []string{"$defs", "dependentSchemas"}, nil)
	next("2020-12", 2020, "https://json-schema.org/draft/2020-12/schema", "$id", nil, nil, []string{"prefixItems"})
	return all
}()

// declared is the edition that object says it is written in, without which it is e.
func (e *edition) declared(object map[string]any, at string) (*edition, error) {
	text, ok := object["$schema"].(string)
	if !ok {
		return e, nil
	}
	if of := editions[dialects[withoutScheme(text)]]; of != nil {
		return of, nil
	}
	text, _, _ = strings.Cut(text, "#")
	if _, err := url.Parse(text); err != nil {
		return nil, &jsonschema.InvalidMetaSchemaURLError{URL: located(at), Err: err}
	}
	return nil, &jsonschema.LoadURLError{URL: text, Err: errNoLoading}
}

// id is the identifier of object, without fragment.
func (e *edition) id(object map[string]any) string {
	if _, refers := object["$ref"]; refers && e.year < 2019 {
		return "" // a reference of the older dialects has nothing beside it
	}
	text, _ := object[e.idName].(string)
	id, _, _ := strings.Cut(text, "#")
	return id
}

// subschemas are the parts of object that are subschemas, by pointer.
func (e *edition) subschemas(object map[string]any, at string) map[string]any {
	below := map[string]any{}
	for _, keyword := range e.one {
		if v, ok := object[keyword]; ok {
			below[at+"/"+keyword] = v
		}
	}
	for _, keyword := range e.named {
		members, _ := object[keyword].(map[string]any)
		for name, v := range members { // into a map again: the order is of no consequence
			below[at+"/"+keyword+"/"+escapePointer(name)] = v
		}
	}
	for _, keyword := range e.ordered {
		items, _ := object[keyword].([]any)
		for i, v := range items {
			below[at+"/"+keyword+"/"+strconv.Itoa(i)] = v
		}
	}
	return below
}

// keywords goes through the keywords of one subschema in the compiler's order.
func (s *survey) keywords(object map[string]any, at string, home *resource) error {
	year := home.edition.year
	if year < 2019 {
		if id, ok := object[home.edition.idName].(string); ok {
			if _, _, err := splitURL(id); err != nil {
				return &jsonschema.ParseAnchorError{URL: located(at)}
			}
		}
	}
	if err := s.refer(object, "$ref", home); err != nil {
		return err
	}
	if _, refers := object["$ref"].(string); !refers || year >= 2019 {
		if err := s.oldest(object, at, year); err != nil {
			return err
		}
	}
	if year >= 6 {
		s.one(object, at, "contains", "propertyNames")
	}
	if condition, ok := object["if"]; ok && year >= 7 {
		s.one(object, at, "if")
		if condition != false {
			s.one(object, at, "then")
		}
		if condition != true {
			s.one(object, at, "else")
		}
	}
	if year >= 2019 {
		if err := s.refer(object, "$recursiveRef", home); err != nil {
			return err
		}
		s.members(object, at, "dependentSchemas")
		s.one(object, at, "unevaluatedItems", "unevaluatedProperties")
	}
	if year >= 2020 {
		if err := s.refer(object, "$dynamicRef", home); err != nil {
			return err
		}
		s.items(object, at, "prefixItems")
		s.one(object, at, "items")
	}
	return nil
}

// oldest goes through the keywords that have been there since draft-04.
func (s *survey) oldest(object map[string]any, at string, year int) error {
	s.items(object, at, "allOf", "anyOf", "oneOf")
	s.one(object, at, "not")
	if _, list := object["items"].([]any); list && year < 2020 {
		s.items(object, at, "items")
		s.additional(object, at, "additionalItems")
	} else if year < 2020 {
		s.one(object, at, "items")
	}
	s.members(object, at, "properties", "patternProperties")
	expressions, _ := object["patternProperties"].(map[string]any)
	for _, expr := range slices.Sorted(maps.Keys(expressions)) {
		if _, err := s.patterns.compile(expr); err != nil {
			return &jsonschema.InvalidRegexError{URL: located(at + "/patternProperties"), Regex: expr, Err: err}
		}
	}
	s.additional(object, at, "additionalProperties")
	dependencies, _ := object["dependencies"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(dependencies)) {
		if _, list := dependencies[name].([]any); !list {
			s.enqueue(at + "/dependencies/" + escapePointer(name))
		}
	}
	if expr, ok := object["pattern"].(string); ok {
		if _, err := s.patterns.compile(expr); err != nil {
			return &jsonschema.InvalidRegexError{URL: located(at + "/pattern"), Regex: expr, Err: err}
		}
	}
	return nil
}

func (s *survey) one(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		if _, ok := object[keyword]; ok {
			s.enqueue(at + "/" + keyword)
		}
	}
}

// additional is one for keywords that may be true or false, which the compiler does not make a subschema.
func (s *survey) additional(object map[string]any, at, keyword string) {
	if _, plain := object[keyword].(bool); !plain {
		s.one(object, at, keyword)
	}
}

func (s *survey) items(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		items, _ := object[keyword].([]any)
		for i := range items {
			s.enqueue(at + "/" + keyword + "/" + strconv.Itoa(i))
		}
	}
}

func (s *survey) members(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		members, _ := object[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			s.enqueue(at + "/" + keyword + "/" + escapePointer(name))
		}
	}
}
