package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
)

// ErrTimeout means that the model's own time ran out. It is not [context.DeadlineExceeded], which is the caller's.
var ErrTimeout = errors.New("the model did not answer in its time")

// An EndpointError means that the endpoint gave no completion: it cannot be reached, breaks off, says no, or says
// what is none.
type EndpointError struct {
	Status int    // of the last response, 0 if there was none
	Reason string // one line, printable and bounded; may hold the endpoint's words, never the API key
}

func (e *EndpointError) Error() string { return "the model gave nothing: " + e.Reason }

// maxReasonBytes bounds what of a reason is kept, before escaping.
const maxReasonBytes = 400

// fault makes an error of what went wrong in an exchange. The endpoint knows the API key and may have put it into the
// words, which must hold the endpoint's whole: they are masked, then cut.
func (m *Model) fault(x Exchange, words string) *EndpointError {
	if words == io.EOF.Error() {
		words = "it closed the connection without a response"
	}
	if x.Status >= 300 && x.Status < 400 {
		words += " (a redirect; none is followed)"
	}
	if x.Status != 0 && x.Status != http.StatusOK {
		words = strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", x.Status, http.StatusText(x.Status))) + ": " + words
	}
	if !m.key && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden) {
		words += " (no key was sent)"
	}
	return &EndpointError{Status: x.Status, Reason: visible.Clip(m.secrets.String("POST "+m.where+": "+words), maxReasonBytes)}
}

// retold is err, which policy.ReadCompletion has found wrong with body, in words without secrets. An error of the decoder quotes
// from a document what fits; so it is read again with its secrets masked, to hear the same of that.
func (m *Model) retold(body []byte, err error) string {
	if clean := m.secrets.Bytes(body); !bytes.Equal(clean, body) {
		if _, _, err = policy.ReadCompletion(clean); err == nil {
			return "the response holds a secret, so what is wrong with it is not shown"
		}
	}
	return err.Error()
}

// refusalWords are the words of a response without success: the message that OpenAI's error object holds, or else the
// body as it is.
func refusalWords(body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return "no reason given"
	}
	whole := strings.TrimSpace(string(body))
	if canonical.Check(body, policy.MaxCompletionDepth) != nil {
		return whole
	}
	var outer struct {
		Error jsontext.Value `json:"error"`
	}
	if err := json.Unmarshal(body, &outer); err != nil || outer.Error == nil {
		return whole
	}
	var told struct {
		Message string `json:"message"`
	}
	var err error
	if outer.Error.Kind() == '"' {
		err = json.Unmarshal(outer.Error, &told.Message)
	} else {
		err = json.Unmarshal(outer.Error, &told)
	}
	if err != nil || told.Message == "" {
		return whole
	}
	return told.Message
}

// stopped is the error of a completion that broke off because its time or the caller's was over, nil if neither was.
func (m *Model) stopped(caller, own context.Context) error {
	if err := ended(caller); err != nil {
		return fmt.Errorf("the model was not waited for: %w", err)
	}
	if ended(own) != nil {
		return fmt.Errorf("%w of %s", ErrTimeout, m.timeout)
	}
	return nil
}

// ended is the context's error. A dialer that sets its own timer by the context's deadline can fail before the
// context says so.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ctx.Err() == nil && ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
