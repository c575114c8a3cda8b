package gateway

import (
	"errors"
	"sync"

	"pgfsm/mcp/gateway/session"
)

// A stream takes what is said to a client during one request, and nothing more once that is answered.
type clientStream struct {
	mu    sync.Mutex
	out   session.Sender
	ended bool
}

var errAnswered = errors.New("the request has been answered")

func (s *clientStream) send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.out == nil {
		return errAnswered
	}
	return s.out.Send(message)
}

// turn has what is said from now on go to another request of the client; nil: to nobody.
func (s *clientStream) redirect(out session.Sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = out
}

func (s *clientStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}
