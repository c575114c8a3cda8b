package schema

import (
	stdjson "encoding/json" // for the type Number alone
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// dialects holds the known values of $schema, without scheme and trailing "#", and the names of the
// dialects.
var dialects = map[string]string{
	"json-schema.org/draft-04/schema":      "draft-04",
	"json-schema.org/draft-06/schema":      "draft-06",
	"json-schema.org/draft-07/schema":      "draft-07",
	"json-schema.org/draft/2019-09/schema": "2019-09",
	"json-schema.org/draft/2020-12/schema": "2020-12",
}

const defaultDialect = "2020-12" // of a schema without $schema: MCP's default

func withoutScheme(url string) string {
	url = strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://")
	return strings.TrimSuffix(url, "#")
}

// A guard bounds a schema before the compiler reads it, and refuses members whose effect on
// references depends on the way to them. It looks at members by name everywhere, also in a default
// or an enum, so it never overlooks one.
type guard struct {
	lim          Limits
	values       int
	subschemas   int
	refs         int
	pointerBytes int
	dialect      string
}

// parse reads raw as strict JSON within the limits and returns the value and its dialect.
func parse(raw []byte, lim Limits) (doc any, dialect string, err error) {
	if len(raw) == 0 {
		return nil, "", &RefusedError{CodeNotStrict, "", "there is no schema"}
	}
	if len(raw) > lim.Bytes {
		return nil, "", &RefusedError{CodeTooLarge, "",
			fmt.Sprintf("the schema has %d bytes, at most %d are allowed", len(raw), lim.Bytes)}
	}

	doc, err = decodeValue(raw, lim.Depth, lim)
	switch {
	case errors.Is(err, canonical.ErrTooDeep):
		return nil, "", &RefusedError{CodeTooDeep, "", clipVisible(err.Error(), maxMessage)}
	case errors.Is(err, errNumber):
		return nil, "", &RefusedError{CodeNumberTooLarge, "", clipVisible(err.Error(), maxMessage)}
	case err != nil:
		return nil, "", &RefusedError{CodeNotStrict, "", clipVisible(canonical.Explain(err).Error(), maxMessage)}
	}

	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, "", &RefusedError{CodeNotStrict, "", "a schema is an object or a boolean"}
	}

	dialect, refused := dialectOf(doc)
	if refused != nil {
		return nil, "", refused
	}
	g := &guard{lim: lim, dialect: dialect}
	if refused := g.inspect(doc, ""); refused != nil {
		return nil, "", refused
	}

	return doc, dialect, nil
}

func dialectOf(doc any) (string, *RefusedError) {
	object, _ := doc.(map[string]any)
	declared, has := object["$schema"]
	if !has {
		return defaultDialect, nil
	}
	url, _ := declared.(string)
	if name := dialects[withoutScheme(url)]; name != "" && strings.HasPrefix(url, "http") {
		return name, nil
	}
	return "", &RefusedError{CodeDialectUnknown, "/$schema", "the dialect " + quoteText(url) + " is not known"}
}

// inspect counts v and the values in it. Members are visited in order, so that the same schema is
// always refused for the same reason.
func (g *guard) inspect(v any, pointer string) *RefusedError {
	if g.values++; g.values > g.lim.Values {
		return g.tooLarge(pointer, "values", g.lim.Values)
	}
	if g.pointerBytes += len(pointer); g.pointerBytes > g.lim.PointerBytes {
		return g.tooLarge(pointer, "bytes in the pointers to its values", g.lim.PointerBytes)
	}

	switch v := v.(type) {
	case bool:
		return g.countSubschema(pointer)
	case []any:
		for i, item := range v {
			if refused := g.inspect(item, pointer+"/"+strconv.Itoa(i)); refused != nil {
				return refused
			}
		}
	case map[string]any:
		if refused := g.countSubschema(pointer); refused != nil {
			return refused
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			memberPointer := pointerTo(pointer, name)
			if refused := g.checkMember(name, v[name], memberPointer); refused != nil {
				return refused
			}
			if refused := g.inspect(v[name], memberPointer); refused != nil {
				return refused
			}
		}
	}

	return nil
}

func (g *guard) countSubschema(pointer string) *RefusedError {
	if g.subschemas++; g.subschemas > g.lim.Subschemas {
		return g.tooLarge(pointer, "objects and booleans", g.lim.Subschemas)
	}
	return nil
}

// checkMember counts references and refuses what the compiler would follow by the way to it, or
// misread: it would keep the low 64 bits of a count.
func (g *guard) checkMember(name string, v any, at string) *RefusedError {
	_, isText := v.(string)
	nested := strings.LastIndexByte(at, '/') > 0

	switch name {
	case "$ref":
		if g.refs++; g.refs > g.lim.Refs {
			return g.tooLarge(at, "references", g.lim.Refs)
		}
	case "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor":
		if isText || v == true {
			return &RefusedError{CodeReferenceRefused, clipVisible(at, maxPointer),
				"dynamic references are not allowed"}
		}
	case "$id", "id":
		if isText && nested && (name == "$id" || g.dialect == "draft-04") {
			return &RefusedError{CodeReferenceRefused, clipVisible(at, maxPointer),
				"only the whole schema may have an identifier"}
		}
	case "$anchor":
		if isText && nested && !isDefinition(at) {
			return &RefusedError{CodeReferenceRefused, clipVisible(at, maxPointer),
				"only the whole schema and the schemas in its $defs may have an anchor"}
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
		"maxContains":
		if number, ok := v.(stdjson.Number); ok && !isCount(number) {
			return &RefusedError{CodeNumberTooLarge, clipVisible(at, maxPointer),
				clipVisible(number.String(), maxQuoted) + " is no count: it does not fit into 64 bits"}
		}
	}

	return nil
}

// isDefinition reports whether a member belongs to a schema in $defs of the whole schema. The
// compiler knows their anchors before it follows a reference; whether it knows others in time
// depends on the way to them.
func isDefinition(member string) bool {
	return strings.HasPrefix(member, "/$defs/") && strings.Count(member, "/") == 3
}

// isCount reports whether n is at most 2^63-1. Whether it is a whole number, and not negative, is
// for the meta-schema.
func isCount(n stdjson.Number) bool {
	value, ok := new(big.Rat).SetString(n.String())
	return ok && value.Cmp(new(big.Rat).SetInt64(math.MaxInt64)) <= 0
}

func (g *guard) tooLarge(pointer, what string, limit int) *RefusedError {
	return &RefusedError{CodeTooLarge, clipVisible(pointer, maxPointer),
		fmt.Sprintf("the schema has more than %d %s", limit, what)}
}

// pointerTo returns the pointer to a member of what a pointer leads to.
func pointerTo(pointer, name string) string {
	return string(jsontext.Pointer(pointer).AppendToken(name))
}
