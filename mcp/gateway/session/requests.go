package session

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Reasons for which a request or a session is not accepted.
var (
	ErrBusy        = errors.New("too much is under way; ask again later")
	ErrStopping    = errors.New("the gateway is stopping; ask again later, or another one")
	ErrDuplicateID = errors.New("a request with this id is under way")
)

// A Request is one message of a client with all data that decides about it. One goroutine owns it.
type Request struct {
	wire.Message
	From Identity
	// The identity provider's claims about the client of this message; nil for other clients.
	Identity *policy.Identity
	Endpoint string // the server's name; empty: all servers
	// nil: the client speaks a stateless revision, or has not initialized. initialize sets it.
	Session  *Session
	Protocol string      // the revision in force for this message; empty before initialize
	HTTP     http.Header // header of the HTTP request with the message; nil over stdio
	Header   http.Header // the same header for a stateless request; nil for others
	Out      Sender      // sender of messages before the answer; nil for notifications and responses
	// The record of a tools/call found that the client's token is not valid any more. The dispatcher
	// sets it; the answer is 401.
	TokenRefused bool
}

// A Sender takes messages for a client while its request is under way, in order. An error means
// that the client is gone, or that the request was answered.
type Sender interface {
	Send(message []byte) error
}

// A RequestID is a JSON-RPC id in one form: two spellings of the same string are equal.
type RequestID string

// IDOf returns the request id that a JSON value holds.
func IDOf(value jsontext.Value) RequestID {
	if value.Kind() != '"' {
		return RequestID(value)
	}
	text, _ := wire.Text(value) // package wire has read the id strictly
	return RequestID(`"` + text)
}

// InFlight is the set of requests under way of one session or one connection.
type InFlight struct {
	mu      sync.Mutex
	cancels map[RequestID]context.CancelFunc
}

// Add registers a request. The error is [ErrBusy] or [ErrDuplicateID].
func (f *InFlight) Add(id RequestID, limit int, cancel context.CancelFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancels[id] != nil {
		return ErrDuplicateID
	}
	if len(f.cancels) >= limit {
		return ErrBusy
	}

	if f.cancels == nil {
		f.cancels = make(map[RequestID]context.CancelFunc)
	}
	f.cancels[id] = cancel
	return nil
}

// Remove removes a request that has ended.
func (f *InFlight) Remove(id RequestID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cancels, id)
}

// Cancel cancels a request if it is under way.
func (f *InFlight) Cancel(id RequestID) {
	f.mu.Lock()
	cancel := f.cancels[id]
	f.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// Count returns the number of requests under way.
func (f *InFlight) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.cancels)
}

// An Admission counts the requests, or the streams, of clients, up to a limit for all and one for
// each client, until it is stopped.
type Admission struct {
	mu       sync.Mutex
	requests quota
	stopping chan struct{} // closed by Stop
	idle     chan struct{} // closed once stopped and no request is under way
}

func newAdmission(total, perClient int) *Admission {
	return &Admission{requests: newQuota(total, perClient), stopping: make(chan struct{}), idle: make(chan struct{})}
}

// Enter admits a request. Leave ends it. The error is [ErrBusy] or [ErrStopping].
func (a *Admission) Enter(client Identity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Stopped() {
		return ErrStopping
	}
	if !a.requests.fits(client, 1) {
		return ErrBusy
	}
	a.requests.add(client, 1)
	return nil
}

// Leave ends an admitted request.
func (a *Admission) Leave(client Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests.add(client, -1)
	if a.requests.taken == 0 && a.Stopped() {
		close(a.idle)
	}
}

// Stop admits no more requests. The channel that it returns is closed when none is under way.
func (a *Admission) Stop() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.Stopped() {
		close(a.stopping)
		if a.requests.taken == 0 {
			close(a.idle)
		}
	}
	return a.idle
}

// Stopping returns a channel that Stop closes.
func (a *Admission) Stopping() <-chan struct{} { return a.stopping }

// Stopped reports whether Stop was called.
func (a *Admission) Stopped() bool {
	select {
	case <-a.stopping:
		return true
	default:
		return false
	}
}

// Count returns the number of requests under way.
func (a *Admission) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests.taken
}
