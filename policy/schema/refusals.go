package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explainRefusal says why the compiler refused doc. The compiler visits members in the order of a
// Go map and stops at its first error, so only its judgement of the whole document by the
// meta-schema, which comes before that, is the same every time. A pattern is looked for here again,
// and for references there is one sentence.
func explainRefusal(err error, doc any, lim Limits) *RefusedError {
	var invalid *jsonschema.SchemaValidationError
	byMetaSchema := errors.As(err, &invalid) && invalid.URL == documentURL+"#"
	if !byMetaSchema || hasBadPattern(invalid.Err) {
		engine := &patterns{lim: lim, known: map[string]*pattern{}}
		if refused := engine.firstRefused(doc, ""); refused != nil {
			return refused
		}
	}

	// The rest is about references, which have one sentence.
	if !byMetaSchema {
		return unresolved
	}
	first := issuesOf(invalid.Err).Issues[0]
	return &RefusedError{CodeNotASchema, first.Path, "the schema's value " + first.Message}
}

// hasBadPattern reports whether the meta-schema complains of a regular expression.
func hasBadPattern(err error) bool {
	tree, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return false
	}
	format, ok := tree.ErrorKind.(*kind.Format)
	return ok && format.Want == "regex" ||
		slices.ContainsFunc(tree.Causes, func(cause *jsonschema.ValidationError) bool { return hasBadPattern(cause) })
}

var unresolved = &RefusedError{
	Code:   CodeReferenceRefused,
	Reason: "its references cannot be resolved: each must lead to one subschema of the schema, and nothing outside the schema is read",
}

// firstRefused returns the first pattern in v that is refused, in the order of the members' names,
// or nil.
func (p *patterns) firstRefused(v any, pointer string) *RefusedError {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if refused := p.firstRefused(item, pointer+"/"+strconv.Itoa(i)); refused != nil {
				return refused
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			memberPointer := pointerTo(pointer, name)
			for _, expr := range patternsIn(name, v[name]) {
				if _, err := p.compile(expr); err != nil {
					return patternRefused(expr, err, memberPointer)
				}
			}
			if refused := p.firstRefused(v[name], memberPointer); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// patternsIn returns the regular expressions in a member.
func patternsIn(name string, v any) []string {
	switch v := v.(type) {
	case string:
		if name == "pattern" {
			return []string{v}
		}
	case map[string]any:
		if name == "patternProperties" {
			return slices.Sorted(maps.Keys(v))
		}
	}
	return nil
}

// patternRefused returns why an expression is refused, and where it is unless no single one is to
// blame.
func patternRefused(expr string, err error, pointer string) *RefusedError {
	if errors.Is(err, errAllPatterns) {
		return &RefusedError{CodePatternRefused, "", clipVisible(err.Error(), maxMessage)}
	}
	reason := fmt.Sprintf("the pattern %s %s", quoteText(expr), clipVisible(err.Error(), maxMessage))
	return &RefusedError{CodePatternRefused, clipVisible(pointer, maxPointer), reason}
}
