package prove

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
)

// classifyPredicate finds the argument that a predicate of a risk rule asks about.
func (a *atom) classifyPredicate(p *condition.Predicate) {
	steps := []string{p.Path}
	if strings.HasPrefix(p.Path, "/") {
		steps = slices.Collect(jsontext.Pointer(p.Path).Tokens())
	}
	if slices.ContainsFunc(steps[1:], func(step string) bool { return strings.Trim(step, "0123456789") == "" }) {
		a.free = "it asks about an element of a list by its number"
		return
	}

	l := location{place: placeArgs + steps[0], path: steps}
	f := &former{atom: a}
	if !f.setPlace(l) || !f.acceptPredicate(l, p) {
		a.setFree("it has a form that is not analyzed")
	}
}

func (f *former) acceptPredicate(l location, p *condition.Predicate) bool {
	var values []jsontext.Value
	element := l
	element.element = true
	switch p.Op {
	case condition.OpExists:
		return true
	case condition.OpIn:
		return json.Unmarshal(p.Value, &values) == nil &&
			!slices.ContainsFunc(values, func(v jsontext.Value) bool { return !f.addScalar(l, v) })
	case condition.OpContains:
		if p.Value.Kind() != '"' {
			return f.addScalar(element, p.Value)
		}
		source, err := canonical.Unquote(p.Value)
		folded := `(?i:` + regexp.QuoteMeta(source) + `)`
		return err == nil && f.addSearch(l, "matches", folded) && f.addSearch(element, "matches", `\A`+folded+`\z`)
	case condition.OpMatches:
		source, err := canonical.Unquote(p.Value)
		return err == nil && f.addSearch(l, "matches", source)
	}
	return f.addScalar(l, p.Value)
}

// addScalar adds a JSON scalar that a value is compared with.
func (f *former) addScalar(l location, v jsontext.Value) bool {
	switch v.Kind() {
	case '"':
		literal, err := canonical.Unquote(v)
		return err == nil && f.addLiteral(l, types.String(literal))
	case '0':
		number := condition.Number(string(v))
		return ratOf(number) != nil && f.addLiteral(l, number)
	}
	return v.Kind() == 't' || v.Kind() == 'f'
}
