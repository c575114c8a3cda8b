package policy

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// ReadResult finds the structured content of a raw CallToolResult, in canonical form, or says why there is none to
// trust. Everything but an absent or false isError counts as an error.
func ReadResult(raw []byte, depth int) (structured []byte, note string) {
	if err := canonical.Check(raw, depth); err != nil {
		return nil, "the result is " + err.Error()
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, "the result is not a JSON object"
	}
	if kind, ok := members["resultType"]; ok && string(kind) != `"complete"` {
		return nil, "the result is not complete (resultType " + string(kind[:min(len(kind), 40)]) + ")"
	}
	if failed(members) {
		return nil, "the tool reports an error"
	}
	content, ok := members["structuredContent"]
	if !ok || content.Kind() != '{' {
		return nil, "the result has no structured content"
	}
	structured, err := canonical.JSON(content)
	if err != nil {
		return nil, "the structured content is " + err.Error()
	}
	return structured, ""
}

func failed(members map[string]jsontext.Value) bool {
	flag, ok := members["isError"]
	return ok && string(flag) != "false"
}

// IsError reports whether a raw result says that the tool failed; a result that cannot be read is an error.
func IsError(raw []byte) bool {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return true
	}
	return failed(members)
}
