package policy

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// ReadResult returns the structured content of a raw CallToolResult, in canonical form, or why
// there is none that can be used. Everything but an absent or false isError counts as an error. The
// members are nil if the result was not read strictly yet.
func ReadResult(raw []byte, members []canonical.Member, depth int) (structured []byte, note string) {
	if err := canonical.CheckDepth(raw, depth); err != nil {
		return nil, "the result is not usable: " + err.Error()
	}
	if members == nil {
		var err error
		if members, err = canonical.ReadMembers(raw); err != nil {
			return nil, unreadableResult(raw)
		}
	}

	// The first that stands in the way, in the order of the names.
	switch {
	case find(members, "inputRequests") != nil:
		return nil, "the result asks for input: it has inputRequests"
	case find(members, "requestState") != nil:
		return nil, "the result asks for input: it has requestState"
	}
	if kind := find(members, "resultType"); kind != nil {
		if word, err := canonical.JSON(kind); err != nil || string(word) != `"complete"` {
			return nil, "the result is not complete: its resultType is " + clip(string(word))
		}
	}
	if isError := find(members, "isError"); isError != nil && string(isError) != "false" {
		return nil, "the tool reports an error"
	}

	structured, err := canonical.JSON(find(members, "structuredContent"))
	if err != nil || structured[0] != '{' {
		return nil, "the result has no structured content"
	}
	return structured, ""
}

// unreadableResult says why a result is not one strict JSON object.
func unreadableResult(raw []byte) string {
	if _, err := canonical.JSON(raw); err != nil {
		return "the result is " + err.Error()
	}
	return "the result is not a JSON object"
}

// find returns the value of a member; nil if there is none.
func find(members []canonical.Member, name string) jsontext.Value {
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// IsError reports whether a raw result is an error of the tool. A result that cannot be read is
// one.
func IsError(raw []byte) bool {
	object, err := canonical.JSON(raw)
	if err != nil || object[0] != '{' {
		return true
	}
	for name, value := range canonical.Members(object) {
		if name == "isError" {
			return string(value) != "false"
		}
	}
	return false
}
