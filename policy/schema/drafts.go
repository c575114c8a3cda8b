package schema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A draft holds the keywords of a dialect that have subschemas.
type draft struct {
	year    int // of the draft; before 2019 its number
	url     string
	idName  string
	one     []string // keywords whose value is a subschema
	named   []string // keywords whose value's members are
	ordered []string // keywords whose value's items are
}

// drafts holds the dialects by name. Each has the keywords of the one before it.
var drafts = func() map[string]*draft {
	e := draft{4, "http://json-schema.org/draft-04/schema", "id",
		[]string{"not", "additionalProperties", "items", "additionalItems"},
		[]string{"definitions", "properties", "patternProperties", "dependencies"},
		[]string{"allOf", "anyOf", "oneOf", "items"}}
	all := map[string]*draft{}
	next := func(name string, year int, url, idName string, one, named, ordered []string) {
		e = draft{year, url, idName, slices.Concat(e.one, one), slices.Concat(e.named, named), slices.Concat(e.ordered, ordered)}
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

// declared returns the draft that $schema names, or e without one.
func (e *draft) declared(object map[string]any, at string) (*draft, error) {
	text, ok := object["$schema"].(string)
	if !ok {
		return e, nil
	}
	if of := drafts[dialects[withoutScheme(text)]]; of != nil {
		return of, nil
	}
	text, _, _ = strings.Cut(text, "#")
	if _, err := url.Parse(text); err != nil {
		return nil, &jsonschema.InvalidMetaSchemaURLError{URL: locationOf(at), Err: err}
	}
	return nil, &jsonschema.LoadURLError{URL: text, Err: errNoLoading}
}

// id returns the identifier of a subschema, without fragment.
func (e *draft) id(object map[string]any) string {
	if _, refers := object["$ref"]; refers && e.year < 2019 {
		return "" // a reference of the older dialects has nothing beside it
	}
	text, _ := object[e.idName].(string)
	id, _, _ := strings.Cut(text, "#")
	return id
}

// subschemas returns the subschemas in the keywords of object, by pointer.
func (e *draft) subschemas(object map[string]any, at string) map[string]any {
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

// keywords enqueues the subschemas of one subschema and resolves its references, in the compiler's order.
func (r *resolver) keywords(object map[string]any, at string, home *resource) error {
	year := home.draft.year
	if year < 2019 {
		if id, ok := object[home.draft.idName].(string); ok {
			if _, _, err := splitURL(id); err != nil {
				return &jsonschema.ParseAnchorError{URL: locationOf(at)}
			}
		}
	}
	if err := r.refer(object, "$ref", home); err != nil {
		return err
	}
	if _, refers := object["$ref"].(string); !refers || year >= 2019 {
		if err := r.sharedKeywords(object, at, year); err != nil {
			return err
		}
	}
	if year >= 6 {
		r.one(object, at, "contains", "propertyNames")
	}
	if condition, ok := object["if"]; ok && year >= 7 {
		r.one(object, at, "if")
		if condition != false {
			r.one(object, at, "then")
		}
		if condition != true {
			r.one(object, at, "else")
		}
	}
	if year >= 2019 {
		if err := r.refer(object, "$recursiveRef", home); err != nil {
			return err
		}
		r.members(object, at, "dependentSchemas")
		r.one(object, at, "unevaluatedItems", "unevaluatedProperties")
	}
	if year >= 2020 {
		if err := r.refer(object, "$dynamicRef", home); err != nil {
			return err
		}
		r.items(object, at, "prefixItems")
		r.one(object, at, "items")
	}
	return nil
}

// sharedKeywords does the same for the keywords that every draft has.
func (r *resolver) sharedKeywords(object map[string]any, at string, year int) error {
	r.items(object, at, "allOf", "anyOf", "oneOf")
	r.one(object, at, "not")
	if _, list := object["items"].([]any); list && year < 2020 {
		r.items(object, at, "items")
		r.additional(object, at, "additionalItems")
	} else if year < 2020 {
		r.one(object, at, "items")
	}
	r.members(object, at, "properties", "patternProperties")
	expressions, _ := object["patternProperties"].(map[string]any)
	for _, expr := range slices.Sorted(maps.Keys(expressions)) {
		if _, err := r.patterns.compile(expr); err != nil {
			return &jsonschema.InvalidRegexError{URL: locationOf(at + "/patternProperties"), Regex: expr, Err: err}
		}
	}
	r.additional(object, at, "additionalProperties")
	dependencies, _ := object["dependencies"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(dependencies)) {
		if _, list := dependencies[name].([]any); !list {
			r.enqueue(at + "/dependencies/" + escapePointer(name))
		}
	}
	if expr, ok := object["pattern"].(string); ok {
		if _, err := r.patterns.compile(expr); err != nil {
			return &jsonschema.InvalidRegexError{URL: locationOf(at + "/pattern"), Regex: expr, Err: err}
		}
	}
	return nil
}

func (r *resolver) one(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		if _, ok := object[keyword]; ok {
			r.enqueue(at + "/" + keyword)
		}
	}
}

// additional is one for keywords that may be a boolean, which the compiler does not compile as a subschema.
func (r *resolver) additional(object map[string]any, at, keyword string) {
	if _, plain := object[keyword].(bool); !plain {
		r.one(object, at, keyword)
	}
}

func (r *resolver) items(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		items, _ := object[keyword].([]any)
		for i := range items {
			r.enqueue(at + "/" + keyword + "/" + strconv.Itoa(i))
		}
	}
}

func (r *resolver) members(object map[string]any, at string, keywords ...string) {
	for _, keyword := range keywords {
		members, _ := object[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			r.enqueue(at + "/" + keyword + "/" + escapePointer(name))
		}
	}
}
