package policy

import "pgfsm/internal/canonical"

// ReadResult returns the structured content of a raw CallToolResult, in canonical form, or why
// there is none that can be used. Everything but an absent or false isError counts as an error.
func ReadResult(raw []byte, depth int) (structured []byte, note string) {
	if err := canonical.CheckDepth(raw, depth); err != nil {
		return nil, "the result is not usable: " + err.Error()
	}
	object, err := canonical.JSON(raw)
	if err != nil {
		return nil, "the result is " + err.Error()
	}
	if object[0] != '{' {
		return nil, "the result is not a JSON object"
	}

	isError := false
	for name, value := range canonical.Members(object) {
		switch name {
		case "resultType":
			if string(value) != `"complete"` {
				return nil, "the result is not complete: its resultType is " + clip(string(value))
			}
		case "inputRequests", "requestState":
			return nil, "the result asks for input: it has " + name
		case "isError":
			isError = string(value) != "false"
		case "structuredContent":
			structured = value
		}
	}

	switch {
	case isError:
		return nil, "the tool reports an error"
	case structured == nil || structured[0] != '{':
		return nil, "the result has no structured content"
	}

	return structured, ""
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
