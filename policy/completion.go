package policy

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
)

// MaxCompletionDepth bounds the nesting of a chat completion. The content is at depth 4.
const MaxCompletionDepth = 64

// ReadCompletion reads the model's message from the body of a chat completion: strict JSON with
// exactly one choice. It ignores members that it does not need, such as tool_calls, usage and
// finish_reason. A message without content gives empty content, which the gates refuse; they also
// refuse an answer that was cut off. The error names the place.
//
// Package llm reads live responses with it, and replay recorded ones. So a trace cannot claim
// another message than the endpoint sent.
func ReadCompletion(doc []byte) (content []byte, refusal string, err error) {
	if err := canonical.Check(doc, MaxCompletionDepth); err != nil {
		return nil, "", fmt.Errorf("the response cannot be read: %w", err)
	}

	type message struct {
		Content *string `json:"content"`
		Refusal *string `json:"refusal"`
	}
	var response struct {
		Choices []struct {
			Message *message `json:"message"`
		} `json:"choices"`
	}

	if err := json.Unmarshal(doc, &response); err != nil {
		place := "the response"
		if wrong := (*json.SemanticError)(nil); errors.As(err, &wrong) && wrong.JSONPointer != "" {
			place = string(wrong.JSONPointer)
		}
		return nil, "", fmt.Errorf("%s has another type than in a chat completion", place)
	}

	switch n := len(response.Choices); {
	case n == 0:
		return nil, "", errors.New("the response holds no choice")
	case n > 1:
		return nil, "", fmt.Errorf("the response holds %d choices, not one", n)
	}

	reply := response.Choices[0].Message
	if reply == nil {
		return nil, "", errors.New("/choices/0/message is not an object")
	}

	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}

	return []byte(text(reply.Content)), text(reply.Refusal), nil
}
