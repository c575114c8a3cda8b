package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// ErrTimeout means that the model's own time ran out. It is not [context.DeadlineExceeded], which
// is the caller's.
var ErrTimeout = errors.New("the model did not answer in its time")

// An EndpointError means that the endpoint gave no completion: it was unreachable, closed the
// connection, refused, or answered with something else.
type EndpointError struct {
	Status int    // the status of the last response, 0 if there was none
	Reason string // one line, printable and bounded; may contain text of the endpoint, never the API key
}

func (e *EndpointError) Error() string { return "the model gave nothing: " + e.Reason }

// maxReasonBytes bounds a reason, before escaping.
const maxReasonBytes = 400

// newFault makes the error of a failed exchange. The endpoint knows the API key and may put it into
// its text: fault masks the whole text, and then truncates it.
func (m *Model) newFault(x Exchange, words string) *EndpointError {
	if words == io.EOF.Error() {
		words = "it closed the connection without a response"
	}
	if x.Status >= 300 && x.Status < 400 {
		words += " (a redirect; none is followed)"
	}
	if x.Status != 0 && x.Status != http.StatusOK {
		words = strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", x.Status, http.StatusText(x.Status))) + ": " + words
	}
	if m.key == "" && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden) {
		words += " (no key was sent)"
	}
	return &EndpointError{Status: x.Status,
		Reason: visible.Clip(m.secrets.String("POST "+m.where+": "+words), maxReasonBytes)}
}

// maskedError returns the error of policy.ReadCompletion for body, without secrets. The decoder's
// error may quote a secret from the document, so retold masks the document and reads it again.
func (m *Model) maskedError(body []byte, err error) string {
	if clean := m.secrets.Bytes(body); !bytes.Equal(clean, body) {
		if _, _, err = policy.ReadCompletion(clean); err == nil {
			return "the response holds a secret, so what is wrong with it is not shown"
		}
	}
	return err.Error()
}

// refusalWords is the text of an unsuccessful response: the message of OpenAI's error object, or
// else the body.
func refusalWords(body []byte) string {
	var refusal struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &refusal) == nil && refusal.Error.Message != "" {
		return refusal.Error.Message
	}
	return cmp.Or(strings.TrimSpace(string(body)), "no reason given")
}

// timeError is the error of a completion whose time or whose caller's time was over; nil if neither
// was.
func (m *Model) timeError(caller, limited context.Context) error {
	if err := contextError(caller); err != nil {
		return fmt.Errorf("the model was not waited for: %w", err)
	}
	if contextError(limited) != nil {
		return fmt.Errorf("%w of %s", ErrTimeout, m.timeout)
	}
	return nil
}

// contextError is the context's error. A dialer with its own timer for the context's deadline can
// fail slightly before the context is done.
func contextError(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ctx.Err() == nil && ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
