package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

// Substitutes are what the SDK decodes in place of the real results. Its typed results turn large integers into
// floats, drop unknown members and fail on new content types; we keep the raw bytes and never look at the typed ones.
// Without ttlMs an empty list is never served from the SDK's cache.
const (
	substituteList = `{"tools":[]}`
	substituteCall = `{"content":[]}`
)

// methodRefused replaces the method of what a server asks of us: the SDK answers "method not found" and no handler
// ever sees the params. We announce no sampling, elicitation or roots.
const methodRefused = "unsupported"

// errStale stops a call without ending the session: the SDK takes an error of this code for a request that was refused
// on its way and goes on.
var errStale = &jsonrpc.Error{Code: sdkRejected, Message: "the tools have changed since they were listed"}

// guardTransport puts a guardedConn around the connection of another transport.
type guardTransport struct {
	session *session
	inner   sdk.Transport
}

func (t *guardTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.session.guard = &guardedConn{Connection: conn, session: t.session, pending: make(map[jsonrpc.ID]*exchange)}
	return t.session.guard, nil
}

// A guardedConn is the one way from the SDK to a server. Out: only the requests of a client that lists and calls, and
// a tools/call only against a permit. In: raw results are taken aside, and what the server asks is refused.
type guardedConn struct {
	sdk.Connection
	session *session

	mu      sync.Mutex
	pending map[jsonrpc.ID]*exchange // our requests that have no answer yet

	owed atomic.Int32 // requests of the server that the SDK has not answered yet
}

func (g *guardedConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok { // an answer to the server's ping, or the refusal of anything else
		defer g.owed.Add(-1)
		return g.Connection.Write(ctx, msg)
	}
	x := exchangeOf(ctx)
	switch req.Method {
	case methodCall:
		if !req.IsCall() {
			return g.refuse(req.Method, errNoPermit)
		}
		if err := permitOf(ctx).write(req.Params); err != nil {
			return g.refuse(req.Method, err)
		}
		if !g.session.good(x.listing) { // a notification that was read before this moment stops the call
			x.stale.Store(true)
			return errStale
		}
	case methodList:
		if x == nil || x.method != methodList {
			return g.refuse(req.Method, fmt.Errorf("it is not part of a listing"))
		}
		if x.first {
			g.session.begun.Store(g.session.moments.Add(1))
		}
	case methodInitialize, methodDiscover:
		x = &exchange{method: req.Method}
	case noteInitialized, noteCancelled:
		return g.Connection.Write(ctx, msg)
	default:
		return g.refuse(req.Method, fmt.Errorf("we never send it"))
	}
	g.mu.Lock()
	g.pending[req.ID] = x
	g.mu.Unlock()
	err := g.Connection.Write(ctx, msg)
	if err != nil {
		g.take(req.ID)
	}
	return err
}

// refuse ends the session: something in this process tried to send what it must not.
func (g *guardedConn) refuse(method string, why error) error {
	err := g.session.fail(CodePermit, "the connection refused to send %s: %v", method, why)
	return fmt.Errorf("mcp: %w", err)
}

func (g *guardedConn) take(id jsonrpc.ID) *exchange {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.pending[id]
	delete(g.pending, id)
	return x
}

// progress notes that the call with this token goes on.
func (g *guardedConn) progress(token jsontext.Value) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.pending { // in any order: one has this token
		if x.permit != nil && x.permit.token == string(token) {
			x.clock.Progress()
		}
	}
}

// forget drops x if it still waits: its caller gave up.
func (g *guardedConn) forget(x *exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, other := range g.pending {
		if other == x {
			delete(g.pending, id)
		}
	}
}

func (g *guardedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := g.Connection.Read(ctx)
		if err != nil {
			return nil, g.session.lose(err)
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			x := g.take(m.ID)
			if x == nil { // the answer to a request that was given up, or to none
				if err := g.session.tolerate(g.session.limits.Unasked); err != nil {
					return nil, err
				}
				continue
			}
			return g.session.accept(x, m)
		case *jsonrpc.Request:
			if err := g.session.tolerate(g.session.limits.Unasked); err != nil {
				return nil, err
			}
			if m.Method == noteProgress && isProgress(jsontext.Value(m.Params)) {
				g.progress(wire.Member(m.Params, tokenMember))
			}
			if !m.IsCall() {
				continue
			}
			if g.owed.Add(1) > maxOwed {
				return nil, g.session.fail(CodeProtocol, "it has more than %d requests that it takes no answer to", maxOwed)
			}
			asked := &jsonrpc.Request{ID: m.ID, Method: methodRefused}
			if m.Method == methodPing {
				asked.Method = methodPing
			}
			return asked, nil
		}
	}
}

// accept takes the raw answer to x aside and returns what the SDK may decode instead.
func (s *session) accept(x *exchange, m *jsonrpc.Response) (jsonrpc.Message, error) {
	if x.permit != nil && !x.permit.touched.Load() {
		return nil, s.fail(CodeProtocol, "it answered a call that had not been sent")
	}
	if m.Error != nil {
		// The SDK makes up an answer when a stream ends without one: that is not the server's, and of another type.
		if e, ok := m.Error.(*jsonrpc.Error); ok {
			x.answer(nil, &RPCError{Code: e.Code, Message: e.Message, Data: e.Data})
		}
		return m, nil
	}
	result := []byte(m.Result)
	if result == nil {
		result = []byte("null")
	}
	substitute := ""
	switch x.method {
	case methodCall:
		substitute = substituteCall
	case methodList:
		substitute = substituteList
	default:
		greeting, err := s.greet(x.method, result)
		if err != nil {
			return nil, s.fail(CodeProtocol, "its answer to %s is not usable: %v", x.method, err)
		}
		substitute = string(greeting)
	}
	x.answer(result, nil)
	return &jsonrpc.Response{ID: m.ID, Result: []byte(substitute)}, nil
}
