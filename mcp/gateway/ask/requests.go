package ask

import (
	"context"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of the open requests to the client of one session.
const (
	MaxRequests    = 1000 // of one server
	MaxOwnRequests = 64   // of the gateway
)

// A Request is a request to the client of a session that waits for the answer.
type Request struct {
	Server Server         // that asked; nil: the gateway did
	ID     jsontext.Value // the server's id
	Token  jsontext.Value // the server's progress token; nil if the server gets no progress
	Method string
	Reply  func(wire.Message) // takes the answer to a request of the gateway; nil: the answer is dropped
}

// Requests are the open requests to the client of one session. The zero value is empty.
type Requests struct {
	mu   sync.Mutex
	byID map[string]*Request // by the gateway's id
	last uint64              // number of the newest
}

// Add registers a request and returns the id under which the client gets it.
func (t *Requests) Add(r *Request) (id jsontext.Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[string]*Request)
	}
	t.last++
	name := "pgfsm-" + strconv.FormatUint(t.last, 10)
	t.byID[name] = r
	return wire.Quote(name)
}

// Take removes and returns the open request with an id; nil if there is none.
func (t *Requests) Take(id jsontext.Value) *Request { return t.find(id, true) }

func (t *Requests) find(id jsontext.Value, remove bool) *Request {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byID[name]
	if remove {
		delete(t.byID, name)
	}
	return r
}

// Cancel removes the request that a server sent with an id, and returns the gateway's id; nil if it is not open.
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

// Count is how many requests of a server are open; of nil: how many of the gateway whose answer is dropped.
func (t *Requests) Count(server Server) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byID { // in any order: they are counted
		if r.Server == server && r.Reply == nil {
			n++
		}
	}
	return n
}

// Len is how many requests are open.
func (t *Requests) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Answer passes the client's answer to the server that asked.
func (t *Requests) Answer(ctx context.Context, r *Relay, client session.Identity, m wire.Message) {
	q := t.Take(m.ID)
	switch {
	case q == nil:
		return
	case q.Reply != nil:
		q.Reply(m)
		return
	case q.Server == nil:
		return
	}
	ctx, cancel := answerContext(ctx)
	defer cancel()
	result, failed := m.Result, wire.StripOwn(m.Error)
	recorded := failed
	if failed == nil {
		recorded = result
		result = wire.StripMeta(result)
	}
	if r.Record(ctx, client, q.Server.ServerName(), ToServer, q.Method, recorded) != nil {
		result, failed = nil, NotRecorded
	}
	_ = q.Server.Answer(ctx, q.ID, result, failed) // a server that cannot be told has lost its link
}

// Progress passes the client's progress to the server that asked.
func (t *Requests) Progress(ctx context.Context, params jsontext.Value) {
	q := t.find(wire.Member(params, "progressToken"), false)
	if q == nil || q.Token == nil {
		return
	}
	if params, err := wire.Set(params, "progressToken", q.Token); err == nil {
		_ = q.Server.Notify(ctx, "notifications/progress", params) // as above
	}
}
