package policy_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pgfsm/states"
)

// forgets is a recorder that keeps nothing.
type forgets struct{}

func (forgets) Append(context.Context, states.Step) error { return nil }

// unusual is a text that is easily handled wrongly.
const unusual = "Grüße, 東京 👩‍👩‍👧 \"עברית\" e\u0301 \\ \u202e\u0000\n\t"

// largeText is the length of a large text in bytes.
const largeText = 200_000

// samples are texts that patterns and formats may ask for.
var samples = []string{
	"a", "a1", "1", "aa", "image.png", "example.com", "1-2", "2026-11-23", "2026-11-23T09:00:00Z", "2026-11-01to2026-11-23",
	"3f2504e0-4f89-41d3-9a0c-0305e82c3301", "https://example.com/a",
}

// A maker makes a value that a schema allows, from what the schemas of real tools use.
type maker struct {
	root any
	kind string // minimal, full, large, unicode
	free int    // texts that nothing narrows: of a large value the first is large
}

// object returns a schema as an object, without the reference that it may be.
func (m *maker) object(s any) map[string]any {
	o, _ := s.(map[string]any)
	ref, _ := o["$ref"].(string)
	if ref == "" {
		return o
	}
	at := m.root
	for _, name := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if next, ok := at.(map[string]any)[name]; ok {
			at = next
		}
	}
	return m.object(at)
}

func (m *maker) value(s any, depth int) any {
	o := m.object(s)
	if v, ok := o["const"]; ok {
		return v
	}
	if list, ok := o["enum"].([]any); ok {
		return list[0]
	}
	for _, of := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := o[of].([]any); ok {
			one := maps.Clone(o)
			delete(one, of)
			maps.Copy(one, m.object(list[0]))
			return m.value(one, depth)
		}
	}
	kind := o["type"]
	if list, ok := kind.([]any); ok {
		kind = list[0]
	}
	switch kind {
	case "string":
		return m.text(o)
	case "integer", "number":
		return number(o)
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		return m.list(o, depth)
	case "object":
		return m.members(o, depth)
	}
	if o["properties"] != nil {
		return m.members(o, depth)
	}
	return m.text(o)
}

// members are those that must be there; unless it is minimal, all that are named, down to a depth that recursion ends at.
func (m *maker) members(o map[string]any, depth int) map[string]any {
	made := map[string]any{}
	properties, _ := o["properties"].(map[string]any)
	required, _ := o["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if m.kind != "minimal" && depth < 6 || slices.Contains(required, any(name)) {
			made[name] = m.value(properties[name], depth+1)
		}
	}
	if more, ok := o["additionalProperties"].(map[string]any); ok && m.kind == "full" && len(properties) == 0 && depth < 6 {
		made["key"] = m.value(more, depth+1)
	}
	return made
}

func (m *maker) list(o map[string]any, depth int) []any {
	n := size(o, "minItems")
	if m.kind != "minimal" && depth < 6 && o["maxItems"] != 0.0 {
		n = max(n, 1)
	}
	made := []any{}
	for range n {
		made = append(made, m.value(o["items"], depth+1))
	}
	return made
}

func (m *maker) text(o map[string]any) string {
	least := max(1, size(o, "minLength"))
	pattern, _ := o["pattern"].(string)
	format, _ := o["format"].(string)
	if pattern != "" || format != "" {
		for _, sample := range slices.Backward(samples) {
			if fits, err := regexp.MatchString(pattern, sample); err == nil && fits && len(sample) >= least && formatted(format, sample) {
				return sample
			}
		}
	}
	most := size(o, "maxLength")
	if m.kind == "unicode" && (most == 0 || most >= len([]rune(unusual))) {
		m.free++
		return unusual + strings.Repeat("ü", max(0, least-len([]rune(unusual))))
	}
	if m.kind == "large" && (most == 0 || most >= largeText) {
		if m.free++; m.free == 1 {
			return strings.Repeat("word ", largeText/5)
		}
	}
	return strings.Repeat("a", least)
}

func formatted(format, sample string) bool {
	switch format {
	case "uuid":
		return strings.Count(sample, "-") == 4
	case "date-time":
		return strings.HasSuffix(sample, "Z")
	case "uri":
		return strings.HasPrefix(sample, "https:")
	}
	return true
}

func number(o map[string]any) float64 {
	if n, ok := o["minimum"].(float64); ok {
		return n
	}
	if n, ok := o["exclusiveMinimum"].(float64); ok {
		return n + 1
	}
	if n, ok := o["maximum"].(float64); ok {
		return min(1, n)
	}
	return 1
}

func size(o map[string]any, key string) int {
	n, _ := o[key].(float64)
	return int(n)
}
