package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/schema"
)

// toolObject is MCP's schema for the members of a tool object, for all of its revisions together.
var toolObject = mustCompileOpen(`{
	"type": "object",
	"required": ["name", "inputSchema"],
	"properties": {
		"name": {"type": "string", "minLength": 1},
		"title": {"type": "string"},
		"description": {"type": "string"},
		"inputSchema": {
			"type": "object",
			"required": ["type"],
			"properties": {
				"type": {"const": "object"}, "$schema": {"type": "string"},
				"properties": {"type": "object"}, "required": {"type": "array", "items": {"type": "string"}}
			}
		},
		"outputSchema": {
			"type": "object",
			"properties": {"$schema": {"type": "string"}, "properties": {"type": "object"}, "required": {"type": "array", "items": {"type": "string"}}}
		},
		"annotations": {
			"type": "object",
			"properties": {
				"title": {"type": "string"}, "readOnlyHint": {"type": "boolean"}, "destructiveHint": {"type": "boolean"},
				"idempotentHint": {"type": "boolean"}, "openWorldHint": {"type": "boolean"}
			}
		},
		"icons": {
			"type": "array",
			"items": {
				"type": "object",
				"required": ["src"],
				"properties": {
					"src": {"type": "string"}, "mimeType": {"type": "string"}, "theme": {"enum": ["light", "dark"]},
					"sizes": {"type": "array", "items": {"type": "string"}}
				}
			}
		},
		"execution": {"type": "object", "properties": {"taskSupport": {"enum": ["required", "optional", "forbidden"]}}},
		"_meta": {"type": "object"}
	}
}`)

// sdkTool holds the additional requirements of the TypeScript SDK for a tool, in revisions before
// 2026-07-28. The SDK rejects the whole list if one tool fails them. It also compiles each
// outputSchema.
var sdkTool = mustCompileOpen(`{
	"properties": {
		"inputSchema": {"properties": {"properties": {"additionalProperties": {"type": ["object", "array"]}}}},
		"outputSchema": {
			"required": ["type"],
			"properties": {"type": {"const": "object"}, "properties": {"additionalProperties": {"type": ["object", "array"]}}}
		}
	}
}`)

func mustCompileOpen(text string) func() *schema.Schema {
	return sync.OnceValue(func() *schema.Schema {
		s, err := schema.CompileOpen([]byte(text), schema.DefaultLimits())
		if err != nil {
			panic("policy: " + err.Error())
		}
		return s
	})
}

// toolFaults returns the faults that a schema of this file finds in a tool object; empty if there
// are none.
func toolFaults(s *schema.Schema, tool jsontext.Value) string {
	err := s.Judge(tool)
	var invalid *schema.InvalidError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &invalid):
		return err.Error()
	}
	var texts []string
	for _, issue := range invalid.Issues {
		if issue.Path == "" {
			texts = append(texts, "it "+issue.Message)
		} else {
			texts = append(texts, issue.String())
		}
	}
	return strings.Join(texts, "; ")
}

// sdkFaults returns why the TypeScript SDK rejects a list with this tool; empty if it accepts it.
func (t *Tool) sdkFaults(limits schema.Limits) string {
	object := []byte(`{"inputSchema":` + string(t.InputSchema))
	if t.Output != nil {
		object = append(append(object, `,"outputSchema":`...), t.Output...)
	}
	if what := toolFaults(sdkTool(), append(object, '}')); what != "" || t.Output == nil {
		return what
	}
	if what := sdkOutputFaults(t.Output, limits); what != "" {
		return "outputSchema: " + what
	}
	return ""
}

// sdkOutputFaults returns why the SDK does not compile an outputSchema; empty if it does. Its
// validator takes every schema for one of draft-07, without the meta-schema: so a schema that only
// the meta-schema refuses counts as refused, although the SDK accepts it.
func sdkOutputFaults(output []byte, limits schema.Limits) string {
	if len(output) > limits.Bytes {
		return fmt.Sprintf("it has more than %d bytes", limits.Bytes)
	}
	var doc map[string]any
	if err := json.Unmarshal(output, &doc); err != nil {
		return err.Error()
	}
	if what := sdkKeywordFaults(doc, limits); what != "" {
		return what
	}
	// The patterns are gone from doc, so this compiler judges only the rest.
	doc["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := canonical.Marshal(doc)
	if err != nil {
		return err.Error()
	}
	if _, err := schema.CompileOpen(text, limits); err != nil {
		return err.Error()
	}
	return ""
}

// sdkKeywordFaults finds what the SDK's validator refuses and draft-07 does not say: patterns of
// other dialects, id and nullable. It takes judged patterns and dialects out of the schema. A
// pattern that is larger than pgfsm accepts in other schemas is not read.
func sdkKeywordFaults(v any, limits schema.Limits) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if what := sdkKeywordFaults(item, limits); what != "" {
				return what
			}
		}
	case map[string]any:
		if _, ok := v["id"].(string); ok {
			return `it has the keyword "id"`
		}
		if v["nullable"] == true && v["type"] == nil {
			return `it has the keyword "nullable" without "type"`
		}

		if pattern, ok := v["pattern"].(string); ok {
			if len(pattern) > limits.PatternBytes || !isECMAPattern(pattern) {
				return fmt.Sprintf("the pattern %q is not one of ECMA 262", clip(pattern))
			}
			delete(v, "pattern")
		}

		if named, ok := v["patternProperties"].(map[string]any); ok {
			for i, pattern := range slices.Sorted(maps.Keys(named)) {
				if len(pattern) > limits.PatternBytes || !isECMAPattern(pattern) {
					return fmt.Sprintf("the pattern %q is not one of ECMA 262", clip(pattern))
				}
				subschema := named[pattern]
				delete(named, pattern)
				named[strconv.Itoa(i)] = subschema
			}
		}

		delete(v, "$schema")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch name {
			case "default", "const", "enum", "examples": // values, not schemas
			default:
				if what := sdkKeywordFaults(v[name], limits); what != "" {
					return what
				}
			}
		}
	}
	return ""
}
