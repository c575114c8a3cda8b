package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// refusal says why the compiler refused doc. The compiler visits members in the order of a Go map and stops at its first error, so
// only its judgement of the whole document by the meta-schema, which comes before that, is the same every time. What it finds
// later is a pattern, which is looked for here again, or a reference, for which there is one sentence.
func refusal(err error, doc any, lim Limits) *RefusedError {
	var invalid *jsonschema.SchemaValidationError
	if !errors.As(err, &invalid) || invalid.URL != documentURL+"#" {
		engine := &patterns{lim: lim, known: map[string]*pattern{}}
		if refused := engine.firstRefused(doc, ""); refused != nil {
			return refused
		}
		return unresolved
	}

	if bad := badPattern(invalid.Err); bad != nil {
		format := bad.ErrorKind.(*kind.Format)
		return patternRefused(format.Got, format.Err, instancePointer(bad.InstanceLocation))
	}
	found := issuesOf(invalid.Err)
	return &RefusedError{CodeNotASchema, found.Issues[0].Path, "the schema's value " + found.Issues[0].Message}
}

var unresolved = &RefusedError{
	Code:   CodeReferenceRefused,
	Reason: "its references cannot be resolved: each must lead to one subschema of the schema, and nothing outside the schema is read",
}

// firstRefused returns the first pattern in v that is refused, in the order of the members' names, or nil.
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
			at := pointer + "/" + escapePointer(name)
			for _, expr := range expressions(name, v[name]) {
				if _, err := p.compile(expr); err != nil {
					return patternRefused(expr, err, at)
				}
			}
			if refused := p.firstRefused(v[name], at); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// expressions returns the regular expressions in a member.
func expressions(name string, v any) []string {
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

// patternRefused returns why an expression is refused, and where it is unless no single one is to blame.
func patternRefused(expr any, err error, pointer string) *RefusedError {
	if errors.Is(err, errAllPatterns) {
		return &RefusedError{CodePatternRefused, "", visible(err.Error(), maxMessage)}
	}
	reason := fmt.Sprintf("the pattern %s %s", quotedValue(expr), visible(err.Error(), maxMessage))
	return &RefusedError{CodePatternRefused, visible(pointer, maxPointer), reason}
}

// badPattern finds the meta-schema's complaint about a regular expression, if that is what is wrong: the first about
// one by itself, else any about all of them.
func badPattern(err error) *jsonschema.ValidationError {
	tree, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return nil
	}
	if format, ok := tree.ErrorKind.(*kind.Format); ok && format.Want == "regex" {
		return tree
	}
	var together *jsonschema.ValidationError
	for _, cause := range inOrder(tree) {
		bad := badPattern(cause)
		if bad != nil && !errors.Is(bad.ErrorKind.(*kind.Format).Err, errAllPatterns) {
			return bad
		}
		together = cmp.Or(together, bad)
	}
	return together
}

// inOrder returns the causes of a complaint. The validator finds those about members in any order, and those about
// names too; here they are sorted, everything else stays where it is.
func inOrder(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	causes := slices.Clone(e.Causes)
	for from := 0; from < len(causes); from++ {
		to := from
		for to < len(causes) && within(e, causes[to]) != nil {
			to++
		}
		slices.SortStableFunc(causes[from:to], func(a, b *jsonschema.ValidationError) int {
			return slices.CompareFunc(within(e, a), within(e, b), byToken)
		})
		from = to
	}
	return causes
}

// within returns the location of a cause inside the value of e, or nil if the cause is about the value itself. A name
// sorts after members.
func within(e, cause *jsonschema.ValidationError) []string {
	depth := len(e.InstanceLocation)
	names, aboutName := cause.ErrorKind.(*kind.PropertyNames)
	switch inside := len(cause.InstanceLocation) > depth; {
	case aboutName && inside:
		// The validator has written over the place; the meta-schema's own place tells it.
		return []string{path.Base(path.Dir(cause.SchemaURL)), afterAll, names.Property}
	case aboutName:
		return []string{afterAll, names.Property}
	case inside:
		return cause.InstanceLocation[depth:]
	}
	return nil
}

const afterAll = "\xff" // sorts after every token

// byToken compares list positions as numbers, which sort before names.
func byToken(a, b string) int {
	rank := func(s string) int {
		if s != "" && strings.Trim(s, "0123456789") == "" {
			return len(s)
		}
		return math.MaxInt
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
