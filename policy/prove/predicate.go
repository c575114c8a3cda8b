package prove

import (
	"regexp"
	"slices"
	"strings"

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
	f.setPlace(l)
	if !f.acceptPredicate(l, p) {
		a.place, a.path, a.features = "", nil, nil
		a.free = "it has a form that is not analyzed"
	}
}

func (f *former) acceptPredicate(l location, p *condition.Predicate) bool {
	switch p.Op {
	case condition.OpExists:
		return true
	case condition.OpIn:
		var values []jsontext.Value
		if json.Unmarshal(p.Value, &values) != nil {
			return false
		}
		return !slices.ContainsFunc(values, func(v jsontext.Value) bool { return !f.addScalar(l, v) })
	case condition.OpMatches:
		source, err := canonical.Unquote(p.Value)
		return err == nil && f.addSearch(l, "matches", source)
	case condition.OpContains:
		if p.Value.Kind() != '"' {
			l.element = true
			return f.addScalar(l, p.Value)
		}
		source, err := canonical.Unquote(p.Value)
		if err != nil {
			return false
		}
		folded := `(?i:` + regexp.QuoteMeta(source) + `)`
		element := l
		element.element = true
		return f.addSearch(l, "matches", folded) && f.addSearch(element, "matches", `\A`+folded+`\z`)
	}
	return f.addScalar(l, p.Value)
}

// addScalar adds a JSON scalar that a value is compared with.
func (f *former) addScalar(l location, v jsontext.Value) bool {
	switch v.Kind() {
	case '"':
		literal, err := canonical.Unquote(v)
		if err != nil || !new(tree).addLiteral(literal) {
			return false
		}
		f.add(func(root *tree) { l.tree(root).addLiteral(literal) })
	case '0':
		n := ratOf(string(v))
		if n == nil {
			return false
		}
		f.add(func(root *tree) { l.tree(root).addNumber(n) })
	default:
		return v.Kind() == 't' || v.Kind() == 'f'
	}
	return true
}
