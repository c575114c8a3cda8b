package llm

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// maxResponseDepth bounds the nesting of a response. What is read of it lies at depth 4.
const maxResponseDepth = 64

// readResponse takes what the model said out of a chat completion: strict JSON with exactly one choice. Members that
// are not asked for, such as tool_calls, usage or finish_reason, are passed over; a message that holds nothing else
// says nothing, which the gates refuse as empty. An answer that was cut off is theirs to refuse too. The error names
// the place.
func readResponse(doc []byte) (content []byte, refusal string, err error) {
	if err := canonical.Check(doc, maxResponseDepth); err != nil {
		return nil, "", fmt.Errorf("the response cannot be read: %w", err)
	}
	choices, err := member(doc, "the response", "choices")
	if err != nil {
		return nil, "", err
	}
	var list []jsontext.Value
	if choices != nil && json.Unmarshal(choices, &list) != nil {
		return nil, "", errors.New("/choices is not a list")
	}
	switch len(list) {
	case 0:
		return nil, "", errors.New("the response holds no choice")
	case 1:
	default:
		return nil, "", fmt.Errorf("the response holds %d choices, not one", len(list))
	}
	message, err := member(list[0], "/choices/0", "message")
	if err != nil {
		return nil, "", err
	}
	said, err := optionalText(message, "content")
	if err != nil {
		return nil, "", err
	}
	refusal, err = optionalText(message, "refusal")
	return []byte(said), refusal, err
}

// member returns a member of the object at place, nil if it has none of that name. doc was checked before.
func member(doc jsontext.Value, place, name string) (jsontext.Value, error) {
	if doc.Kind() != '{' {
		return nil, fmt.Errorf("%s is not an object", place)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, fmt.Errorf("%s: %w", place, canonical.Explain(err))
	}
	return members[name], nil
}

// optionalText reads a member of the message that is a string, null or absent.
func optionalText(message jsontext.Value, name string) (string, error) {
	const place = "/choices/0/message"
	value, err := member(message, place, name)
	if err != nil {
		return "", err
	}
	switch value.Kind() {
	case '"':
		return canonical.Unquote(value)
	case 'n', jsontext.KindInvalid: // null or absent
		return "", nil
	}
	return "", fmt.Errorf("%s/%s is neither a string nor null", place, name)
}
