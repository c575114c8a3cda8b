package dojo

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// A kind of argument, as JSON has it.
type form string

const (
	formText   form = "string"
	formWhole  form = "integer"
	formNumber form = "number"
	formTruth  form = "boolean"
	formTexts  form = "array of strings"
	formItems  form = "array of objects"
)

// An argument is a parameter that a caller gives, with its type in JSON Schema.
type argument struct {
	name     string
	form     form
	nullable bool
	required bool
	enum     string // the name of the enumeration that it is a member of; empty: none
}

// plain are the types that map to one form.
var plain = map[string]form{
	"str": formText, "int": formWhole, "float": formNumber, "bool": formTruth, "list[str]": formTexts, "list[dict]": formItems,
}

// argumentOf reads a parameter. One without a type, and one that is annotated, is the environment itself, which the framework
// puts in: it is no argument, and nothing comes.
func argumentOf(p param) (*argument, error) {
	if p.Type == "" || strings.HasPrefix(p.Type, "Annotated") {
		return nil, nil
	}
	a := &argument{name: p.Name, required: p.Required}
	word, optional := strings.CutSuffix(p.Type, " | None")
	a.nullable = optional
	var ok bool
	if a.form, ok = plain[word]; ok {
		return a, nil
	}
	if isName(word) { // an enumeration of the tool's own: its members are texts
		a.form, a.enum = formText, word
		return a, nil
	}
	return nil, fmt.Errorf("the parameter %s has the type %q, which is not known", p.Name, p.Type)
}

// isName reports whether a word is the name of a class: letters, the first a capital.
func isName(s string) bool {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	for i := range len(s) {
		if !letter(s[i]) {
			return false
		}
	}
	return s != "" && s[0] >= 'A' && s[0] <= 'Z'
}

// schema returns the argument's schema.
func (a *argument) schema() map[string]any {
	s := make(map[string]any)
	kind := string(a.form)
	switch a.form {
	case formTexts:
		kind, s["items"] = "array", map[string]any{"type": "string"}
	case formItems:
		kind, s["items"] = "array", map[string]any{"type": "object"}
	}
	s["type"] = kind
	if a.nullable {
		s["type"] = []string{kind, "null"}
	}
	return s
}

// arguments reads the parameters of a tool.
func (t *tool) arguments() (all []*argument, err error) {
	for _, p := range t.Params {
		a, err := argumentOf(p)
		if err != nil {
			return nil, err
		}
		if a != nil {
			all = append(all, a)
		}
	}
	return all, nil
}

// definition is the tool as a server lists it.
func (t *tool) definition(name string) (jsontext.Value, error) {
	all, err := t.arguments()
	if err != nil {
		return nil, fmt.Errorf("the tool %s: %w", name, err)
	}
	byName := make(map[string]*argument)
	properties := make(map[string]any)
	required := []string{}
	for _, a := range all {
		if byName[a.name] != nil {
			return nil, fmt.Errorf("the tool %s has two parameters %q", name, a.name)
		}
		byName[a.name] = a
		properties[a.name] = a.schema()
		if a.required {
			required = append(required, a.name)
		}
	}
	return canonical.Marshal(map[string]any{
		"name": name, "description": t.Doc,
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
	})
}
