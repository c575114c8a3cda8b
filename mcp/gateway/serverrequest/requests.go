package serverrequest

import (
	"context"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Bounds of the open requests to the client of one session.
const (
	MaxRequests    = 1000 // open requests from one server
	MaxOwnRequests = 64   // open requests from the gateway
)

// A Server is the link with the server that sent a request. Package gateway implements it.
type Server interface {
	// Answer answers the server's request with this id.
	Answer(ctx context.Context, id, result, failed jsontext.Value) error
	// Notify sends a notification.
	Notify(ctx context.Context, method string, params []byte) error
}

// A Request is a request to the client of a session that waits for its answer.
type Request struct {
	Server Server         // nil: the gateway sent the request, and drops the answer
	Name   string         // the server's name
	ID     jsontext.Value // the server's id
	Token  jsontext.Value // the server's progress token; nil if the server gets no progress
	Method string
}

// Requests holds the open requests to the client of one session. The zero value is empty.
type Requests struct {
	mu   sync.Mutex
	byID map[string]*Request // keyed by the gateway's id
	last uint64              // number of the newest request
}

// Add registers a request and returns its id for the client. It reports false if too many of the same server are open.
func (t *Requests) Add(r *Request) (id jsontext.Value, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	limit, open := MaxRequests, 0
	if r.Server == nil {
		limit = MaxOwnRequests
	}
	for _, other := range t.byID { // in any order: they are counted
		if other.Server == r.Server {
			open++
		}
	}
	if open >= limit {
		return nil, false
	}

	if t.byID == nil {
		t.byID = make(map[string]*Request)
	}
	t.last++
	name := "pgfsm-" + strconv.FormatUint(t.last, 10)
	t.byID[name] = r
	return wire.Quote(name), true
}

// Find returns the open request with this id; nil if there is none.
func (t *Requests) Find(id jsontext.Value) *Request {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[name]
}

// Remove removes and returns the open request with this id; nil if there is none.
func (t *Requests) Remove(id jsontext.Value) *Request {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byID[name]
	delete(t.byID, name)
	return r
}

// Cancel removes the request that a server sent with this id, and returns the gateway's id; nil if it is not open.
func (t *Requests) Cancel(server Server, id jsontext.Value) jsontext.Value {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.byID { // in any order: one request has this id
		if r.Server == server && string(r.ID) == string(id) {
			delete(t.byID, name)
			return wire.Quote(name)
		}
	}
	return nil
}

// Drop removes the requests of a server whose link has ended.
func (t *Requests) Drop(server Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.byID { // in any order: all are removed
		if r.Server == server {
			delete(t.byID, name)
		}
	}
}

// Len returns the number of open requests.
func (t *Requests) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
