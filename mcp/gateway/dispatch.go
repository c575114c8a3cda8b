package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/current"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// A request is one message of a client with the dispatcher's data about it.
type request struct {
	*session.Request
	gateway      *Gateway
	using        *current.Held[*generation]
	endpoint     *endpoint      // nil: the generation has no such server
	session      *clientSession // nil: the client speaks the stateless revision, or has not initialized
	capabilities clientCapabilities
	logLevel     severity // declared by a stateless request
	observed     Operation
}

// newRequest finds the session of a message, or reads a stateless client's declaration. ended
// reports that the session is over. The caller releases the request.
func (g *Gateway) newRequest(r *session.Request) (q *request, ended bool) {
	q = &request{Request: r, gateway: g}
	q.useGeneration(g.active.Acquire())
	if r.Session == nil {
		q.readMeta()
		return q, false
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	q.session = g.sessions[r.Session]
	if q.session == nil {
		return q, true
	}
	q.capabilities = q.session.capabilities
	return q, false
}

// useGeneration makes the request use a generation.
func (q *request) useGeneration(n *current.Held[*generation]) {
	q.using, q.endpoint = n, n.Value.endpoints[q.Endpoint]
}

func (q *request) release() { q.using.Release() }

// config returns the configuration that the request uses.
func (q *request) config() *Config { return q.using.Value.Config }

// stateless reports whether the revision of the message has no sessions.
func (q *request) stateless() bool { return q.Protocol >= session.Stateless }

// readMeta reads the _meta of a stateless request.
func (q *request) readMeta() {
	wire.ForEachMember(wire.Member(q.Params, "_meta"), func(p wire.Piece) {
		switch p.Name {
		case metaCapabilities:
			q.capabilities = readCapabilities(p.Value)
		case metaLogLevel:
			word, _ := wire.Text(p.Value)
			q.logLevel = severityOf(word)
		}
	})
}

// Dispatch handles one message of a client. It returns the whole message that answers it, and nil
// for notifications and responses. For a subscription it returns when that ends.
func (g *Gateway) Dispatch(ctx context.Context, r *session.Request) []byte {
	q, ended := g.newRequest(r)
	defer q.release()
	ctx = g.beginTrace(ctx, q)
	defer q.reportOperation(ctx, time.Now())

	switch {
	case ended || q.endpoint == nil:
		return q.answerErrorf(wire.InvalidRequest, "the session has ended")
	case q.Response():
		g.relayResponse(ctx, q)
		return nil
	case q.Notification():
		g.relayClientNotification(ctx, q)
		return nil
	}

	// A request: the table of methods says who answers it.
	m := methodOf(fromClient, q.Method)
	if m != nil && m.notification {
		m = nil // MCP has no request of this name
	}

	if failed := g.checkMethod(q, m); failed != nil {
		return q.answerError(failed)
	}
	if q.Large && m.handler != byToolsCall {
		return q.answerError(rpcError(wire.InvalidRequest, wire.ErrLarge.Error()))
	}

	return g.answerRequest(ctx, q, m)
}

// answerRequest answers a request that [Gateway.checkMethod] has accepted.
func (g *Gateway) answerRequest(ctx context.Context, q *request, m *method) []byte {
	switch m.handler {
	case byToolsCall:
		return g.callTool(ctx, q)
	case byToolsList:
		return g.listTools(ctx, q)
	case byTasks:
		return g.serveTask(ctx, q)
	case byLists:
		return g.answerList(ctx, q, m)
	case byRelay:
		return g.relayRequest(ctx, q, m)
	case bySubscription:
		return g.subscribeResource(ctx, q, m)
	case byLogLevel:
		return g.setLevel(ctx, q)
	case byListen:
		return g.serveListen(ctx, q)
	case byInitialize:
		return g.initialize(ctx, q)
	case byDiscover:
		return g.discover(ctx, q)
	default: // ping
		return q.answerResult(jsontext.Value(`{}`))
	}
}

// checkMethod returns the error object for a method that may not be used here, or nil. The code is
// the same for an unknown method, a method of another revision and one that is not exposed; the
// message distinguishes them.
func (g *Gateway) checkMethod(q *request, m *method) jsontext.Value {
	switch {
	case m == nil:
		return rpcError(wire.MethodNotFound, "this method is not known here")
	case q.Protocol == "" && m.handler != byInitialize && m.handler != byPing:
		return rpcError(wire.InvalidRequest,
			"the session has not begun: send initialize first, or the _meta of "+session.Stateless)
	case q.Protocol != "" && !m.existsIn(q.Protocol):
		return rpcError(wire.MethodNotFound, fmt.Sprintf("revision %s does not have this method", q.Protocol))
	case m.handler == byTasks && !g.options.Tasks:
		return rpcError(wire.MethodNotFound, "there are no tasks here")
	case m.needs != 0 && len(q.endpoint.serversExposing(m.needs)) == 0:
		return rpcError(wire.MethodNotFound, fmt.Sprintf("the operator does not expose %s here", m.needs))
	}
	return nil
}

// rpcError returns an error object without data.
func rpcError(code int64, message string) jsontext.Value { return wire.ErrorObject(code, message, nil) }

// answerError answers with an error object.
func (q *request) answerError(failed jsontext.Value) []byte {
	q.noteError(failed)
	return wire.Failure(nil, q.ID, failed)
}

// answerErrorf answers with an error code and a message.
func (q *request) answerErrorf(code int64, format string, args ...any) []byte {
	return q.answerError(rpcError(code, fmt.Sprintf(format, args...)))
}

// answerResult answers with a result that the gateway made, and adds the members that every
// stateless result has.
func (q *request) answerResult(result jsontext.Value) []byte {
	if q.stateless() {
		result = q.gateway.withResultType(result)
	}
	return q.answerRawResult(result)
}

// answerRawResult answers with an unchanged result.
func (q *request) answerRawResult(result []byte) []byte {
	return wire.Response(nil, q.ID, result)
}

// serverFailure returns the error object for a request that no server answered.
func serverFailure(server string, err error) jsontext.Value {
	code, reason := "internal", "it did not answer"
	var lost *upstream.LinkError
	switch {
	case errors.Is(err, errNotRecorded):
		return notRecorded
	case errors.As(err, &lost):
		code, reason = lost.Code, lost.Reason
	case errors.Is(err, context.Canceled):
		code, reason = upstream.CodeCancelled, "the request was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		code, reason = upstream.CodeTimeout, "it did not answer within the time allowed"
	}

	var data wire.Object
	data.Add("code", wire.Quote(code))
	data.Add("server", wire.Quote(server))
	return wire.ErrorObject(wire.InternalError, "server "+server+": "+reason, data.Value())
}

// errNotRecorded is the error for a message that was stopped because it could not be recorded.
var errNotRecorded = errors.New("it could not be recorded, so it was not passed on")

// recordPassed records a message before it passes. The error is errNotRecorded.
func (g *Gateway) recordPassed(ctx context.Context, client Identity, server, direction, method string,
	params jsontext.Value) error {
	if g.options.Passed == nil {
		return nil
	}
	err := g.options.Passed(ctx, Passed{
		Identity:  client,
		Server:    server,
		Direction: direction,
		Method:    method,
		Params:    params,
	})
	if err != nil {
		g.options.Log.Error("a message did not pass because it could not be recorded", "server", server, "method",
			method, "error", err.Error())
		return errNotRecorded
	}
	return nil
}
