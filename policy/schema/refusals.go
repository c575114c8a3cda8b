package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// firstRefusal returns why a schema is refused; err is the compiler's. It is the same every time for the same schema. Errors of the
// meta-schema about the whole document already are: the compiler finds them before it walks any map.
func firstRefusal(err error, doc any, notes *guard) *RefusedError {
	var invalid *jsonschema.SchemaValidationError
	switch {
	case errors.As(err, &invalid) && invalid.URL == locationOf(""):
		return refusal(err)
	case err == nil && (notes.refs == 0 || !notes.identified):
		return nil
	}
	r := newResolver(doc, notes.lim)
	if found := r.resolve(); found != nil {
		return refusal(found)
	}
	if refused := r.ambiguous(); refused != nil || err == nil {
		return refused
	}
	return refusal(err)
}

// patternRefused returns the reason why an expression is refused.
func patternRefused(expr any, err error) string {
	if errors.Is(err, errAllPatterns) {
		return visible(err.Error(), maxMessage)
	}
	return fmt.Sprintf("the pattern %s %s", shown(expr), visible(err.Error(), maxMessage))
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
