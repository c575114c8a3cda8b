package schema

import (
	"cmp"
	stdjson "encoding/json" // for the type Number alone
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	show "pgfsm/internal/visible"
)

const (
	// MaxIssues is the number of issues that an [InvalidError] lists at most.
	MaxIssues = 8

	maxMessage = 240 // bytes of a message
	maxPointer = 200 // bytes of a pointer in a message
	maxQuoted  = 60  // bytes of a value in a message
	maxListed  = 6   // values listed in a message
)

var english = message.NewPrinter(language.English)

// issuesOf turns the validator's findings into issues: the leaves of its tree, and the alternatives
// that have leaves. The validator finds them in any order; the same document always yields the same
// issues.
func issuesOf(err error) *InvalidError {
	tree, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return newInvalidError(CodeInvalid, "", clipVisible(err.Error(), maxMessage))
	}
	var f findings
	f.walk(tree)
	e := &InvalidError{Code: CodeInvalid, More: f.total}
	for _, found := range f.first {
		place := clipVisible(instancePointer(found.at), maxPointer)
		e.Issues = append(e.Issues, Issue{place, found.keyword, found.message})
		if found.null && !slices.Contains(e.Nulls, place) {
			e.Nulls = append(e.Nulls, place)
		}
		e.More -= found.times
	}
	if len(e.Issues) == 0 {
		e.Issues = []Issue{{Message: "is not what the schema allows"}}
	}
	return e
}

// findings keeps the first few of very many complaints, in order of place, keyword and message,
// without repetitions.
type findings struct {
	first []finding
	total int
}

type finding struct {
	at               []string
	keyword, message string
	times            int
	null             bool
}

func (f *findings) walk(e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case nil: // the validator does not keep the complaints of this part
		return
	case *kind.PropertyNames: // its causes are about the name
		f.add(e)
		return
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
	default:
		f.add(e)
	}
	explained := slices.ContainsFunc(e.Causes,
		func(cause *jsonschema.ValidationError) bool { return !isUnevaluated(cause) })
	for _, cause := range e.Causes {
		if !explained || !isUnevaluated(cause) {
			f.walk(cause)
		}
	}
}

func (f *findings) add(e *jsonschema.ValidationError) {
	f.total++
	found := finding{
		at:      e.InstanceLocation,
		keyword: keywordOf(e.ErrorKind),
		times:   1,
		null:    wantsNoNull(e.ErrorKind),
	}

	if _, aboutName := e.ErrorKind.(*kind.PropertyNames); aboutName {
		found.at = nil // the validator has written over the place
	}

	// A finding behind the last one that is kept is dropped before its message is made.
	byPlace := func(a, b finding) int {
		return cmp.Or(slices.Compare(a.at, b.at), cmp.Compare(a.keyword, b.keyword))
	}
	if len(f.first) == MaxIssues && byPlace(found, f.first[MaxIssues-1]) > 0 {
		return
	}

	found.message = clipVisible(describeError(e.ErrorKind), maxMessage)
	i, known := slices.BinarySearchFunc(f.first, found, func(a, b finding) int {
		return cmp.Or(byPlace(a, b), cmp.Compare(a.message, b.message))
	})
	if known {
		f.first[i].times++
		return
	}

	f.first = slices.Insert(f.first, i, found)
	f.first = f.first[:min(len(f.first), MaxIssues)]
}

// isUnevaluated reports whether e is the closed world's complaint about a key. Beside another
// complaint about the same object it means little: a part that fails has evaluated nothing.
func isUnevaluated(e *jsonschema.ValidationError) bool {
	_, refused := e.ErrorKind.(*kind.FalseSchema)
	return refused && strings.HasPrefix(e.SchemaURL, shellURL)
}

func instancePointer(tokens []string) (pointer string) {
	for _, token := range tokens {
		pointer = pointerTo(pointer, token)
	}
	return pointer
}

func keywordOf(k jsonschema.ErrorKind) string {
	if path := k.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	if _, ok := k.(*kind.Not); ok {
		return "not"
	}
	return ""
}

// wantsNoNull reports whether the validator wants something else than the null that it found.
func wantsNoNull(k jsonschema.ErrorKind) bool {
	switch k := k.(type) {
	case *kind.Type:
		return k.Got == "null"
	case *kind.Enum:
		return k.Got == nil
	case *kind.Const:
		return k.Got == nil
	}
	return false
}

// describeError says what is wrong so that the sentence may follow the place. Values from the
// document and from the schema are quoted; everything is bounded by the caller.
func describeError(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.FalseSchema:
		return "is not allowed: the schema names no such key or item here"
	case *kind.AdditionalProperties:
		return "has keys that the schema does not name: " + quotedValues(slices.Sorted(slices.Values(k.Properties)))
	case *kind.Required:
		return "lacks " + quotedValues(k.Missing)
	case *kind.Dependency:
		return "lacks " + quotedValues(k.Missing) + ", needed beside " + quoteText(k.Prop)
	case *kind.DependentRequired:
		return "lacks " + quotedValues(k.Missing) + ", needed beside " + quoteText(k.Prop)
	case *kind.PropertyNames:
		return "has a key " + quoteText(k.Property) + ", which does not fit propertyNames"
	case *kind.Type:
		return "is " + k.Got + ", not " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "is " + quotedValue(k.Got) + ", not one of " + quotedValues(k.Want)
	case *kind.Const:
		return "is " + quotedValue(k.Got) + ", not " + quotedValue(k.Want)
	case *kind.Format:
		return "is " + quotedValue(k.Got) + ", which is not in the format " + quoteText(k.Want)
	case *kind.Pattern:
		return "is " + quoteText(k.Got) + ", which does not match " + quoteText(k.Want)
	case *kind.Minimum:
		return "is " + formatRational(k.Got) + ", less than " + formatRational(k.Want)
	case *kind.Maximum:
		return "is " + formatRational(k.Got) + ", more than " + formatRational(k.Want)
	case *kind.ExclusiveMinimum:
		return "is " + formatRational(k.Got) + ", not more than " + formatRational(k.Want)
	case *kind.ExclusiveMaximum:
		return "is " + formatRational(k.Got) + ", not less than " + formatRational(k.Want)
	case *kind.MultipleOf:
		return "is " + formatRational(k.Got) + ", not a multiple of " + formatRational(k.Want)
	case *kind.MinContains:
		return fmt.Sprintf("has %d items that fit contains, not at least %d", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("has %d items that fit contains, not at most %d", len(k.Got), k.Want)
	case *kind.AnyOf:
		return "fits none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return "fits none of the alternatives"
		}
		return "fits more than one of the alternatives"
	case *kind.Not:
		return "fits what the schema excludes"
	default:
		return k.LocalizedString(english)
	}
}

func quotedValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quoteText(v)
	case stdjson.Number:
		return clipVisible(string(v), maxQuoted)
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

// quotedValues lists the first values, or names.
func quotedValues[T any](values []T) string {
	var texts []string
	for _, v := range values[:min(len(values), maxListed)] {
		texts = append(texts, quotedValue(v))
	}
	text := strings.Join(texts, ", ")
	if more := len(values) - len(texts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// formatRational writes a number as a decimal where it is short, else as a fraction.
func formatRational(r *big.Rat) string {
	if places, exact := r.FloatPrec(); exact && places <= maxQuoted {
		return clipVisible(r.FloatString(places), maxQuoted)
	}
	return clipVisible(r.RatString(), maxQuoted)
}

// quoteText quotes s for a person: bounded, with control, bidirectional and other invisible
// characters escaped.
func quoteText(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(show.Cut(s, maxQuoted, "")) + "…"
	}
	return strconv.Quote(s)
}

// clipVisible bounds s and escapes what cannot be seen in it, without quotes.
func clipVisible(s string, limit int) string { return show.Text(show.Cut(s, limit, "…")) }
