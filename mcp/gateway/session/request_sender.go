package session

import (
	"errors"
	"sync"
)

// ErrAnswered is the error for a message after the answer to its request.
var ErrAnswered = errors.New("the request has been answered")

// A RequestSender sends messages to a client during one request, and none after its answer.
type RequestSender struct {
	mu  sync.Mutex
	out Sender // nil: nothing is sent
}

// NewRequestSender returns a sender that sends to out, which may be nil.
func NewRequestSender(out Sender) *RequestSender { return &RequestSender{out: out} }

// Send sends a message.
func (s *RequestSender) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return ErrAnswered
	}
	return s.out.Send(message)
}

// End makes Send fail from now on.
func (s *RequestSender) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = nil
}
