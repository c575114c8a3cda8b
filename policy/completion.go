package policy

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// MaxCompletionDepth bounds the nesting of a chat completion. The content is at depth 4.
const MaxCompletionDepth = 64

// ReadCompletion reads the model's message from the body of a chat completion: strict JSON with exactly one choice. It
// ignores members that it does not need, such as tool_calls, usage and finish_reason. A message without content gives
// empty content, which the gates refuse; they also refuse an answer that was cut off. The error names the place.
//
// Package llm reads live responses with it, and replay recorded ones. So a trace cannot claim another message than the
// endpoint sent.
func ReadCompletion(doc []byte) (content []byte, refusal string, err error) {
	if err := canonical.Check(doc, MaxCompletionDepth); err != nil {
		return nil, "", fmt.Errorf("the response cannot be read: %w", err)
	}
	choices, err := completionMember(doc, "the response", "choices")
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
	message, err := completionMember(list[0], "/choices/0", "message")
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

// completionMember returns a member of the object at place, nil if it has none of that name. doc was checked before.
func completionMember(doc jsontext.Value, place, name string) (jsontext.Value, error) {
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
	value, err := completionMember(message, place, name)
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
