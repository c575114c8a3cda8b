package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/deadline"
	"pgfsm/mcp/wire"
)

// errNoAnswer is the reason for a request that timed out.
const errNoAnswer = "it did not answer within the time allowed"

// metaLogLevel is a member of _meta that belongs to one hop. Other members with its prefix are refused.
const metaLogLevel = wire.ReservedPrefix + "logLevel"

// Request sends any request but tools/call and those of the handshake. It waits for the answer
// until ctx ends or, except for subscriptions/listen, until the server's Timeout or TimeoutTotal is
// over. The Timeout of prompts/get and resources/read pauses as that of [Link.Call] does. Progress
// is requested only if the caller wants it. Nil params are left out where the revision allows it.
//
// The server's messages that belong to the request go to on, in order, in this goroutine. Over
// streamable HTTP these are all messages in the response. Over stdio and SSE they are progress, and
// all others if no other request is under way. on must not wait for another answer of the server,
// because over stdio and SSE the reader waits for on. If on is nil, the messages go to the peer. A
// JSON-RPC error is a Reply. The error is a [*LinkError], or says that the request cannot be sent.
func (l *Link) Request(ctx context.Context, method string, params []byte, on func(wire.Message)) (Reply, error) {
	switch method {
	case methodCall, methodInitialize, methodDiscover:
		return Reply{}, fmt.Errorf("%s is not sent as a request like others", method)
	case "":
		return Reply{}, errors.New("the request has no method")
	}
	q, err := l.newQuery(method, params, on)
	if err != nil {
		return Reply{}, err
	}
	if method != methodListen {
		ctx, q.clock = l.startClock(ctx, method)
		defer l.stopClock(q.clock)
	}
	l.openStream() // the request may cause notifications between requests
	o := l.sendRequest(ctx, q)
	if o.fault != nil {
		return Reply{}, o.fault.linkError()
	}
	return Reply{Result: o.Result, Error: o.Error}, nil
}

// newQuery encodes a request.
func (l *Link) newQuery(method string, params []byte, on func(wire.Message)) (*query, error) {
	q := &query{id: l.up.ids.Add(1), method: method, on: on}
	params, err := l.setMeta(q, params)
	if err != nil {
		return nil, fmt.Errorf("the params of %s: %w", method, err)
	}
	if l.modern {
		q.name = nameHeaderOf(method, params)
	}
	q.frame = wire.Call(nil, strconv.AppendInt(nil, q.id, 10), method, params)
	return q, nil
}

// setMeta returns the params of q with the _meta for the server, and stores the caller's progress
// token in q. Params without _meta stay as they are, unless the revision demands one.
func (l *Link) setMeta(q *query, params []byte) ([]byte, error) {
	if params != nil {
		if err := wire.CheckObject(params); err != nil {
			return nil, err
		}
	}
	callerMeta := wire.Member(params, "_meta")
	if !l.modern && callerMeta == nil {
		return params, nil
	}

	meta, token, err := l.mergeMeta(callerMeta, q.id, false)
	if err != nil {
		return nil, err
	}
	q.token, q.asked = token, token != nil
	return wire.Set(params, "_meta", meta)
}

// nameHeaderOf returns the value of the header Mcp-Name for a request; "" if it has none.
func nameHeaderOf(method string, params []byte) string {
	member := map[string]string{
		"prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId",
		"tasks/cancel": "taskId",
	}[method]
	if member == "" {
		return ""
	}
	return wire.TextMember(params, member)
}

// mergeMeta returns the _meta of the request with this id, and the progress token in callerMeta.
// The request's id becomes its progress token if the caller wants progress, or always.
func (l *Link) mergeMeta(callerMeta jsontext.Value, id int64, always bool) (meta, token jsontext.Value, err error) {
	var callerMembers wire.Object
	if len(callerMeta) > 0 {
		if callerMembers, token, err = l.readCallerMeta(callerMeta); err != nil {
			return nil, nil, err
		}
	}

	var b wire.Object
	if always || token != nil {
		b.Add(tokenMember, strconv.AppendInt(nil, id, 10))
	}

	b.Append(l.ownMeta)
	b.Append(callerMembers)

	return b.Value(), token, nil
}

// readCallerMeta returns the members of a caller's _meta that go to the server, and its progress
// token.
func (l *Link) readCallerMeta(callerMeta jsontext.Value) (members wire.Object, token jsontext.Value, err error) {
	err = wire.Members(callerMeta, func(name string, value jsontext.Value) error {
		switch {
		case name == tokenMember:
			if kind := value.Kind(); kind != '"' && kind != '0' {
				return errors.New("the progress token is neither a string nor a number")
			}
			token = value
		case name == sdk.MetaKeyProtocolVersion, name == sdk.MetaKeyClientInfo, name == sdk.MetaKeyClientCapabilities:
			// the link sends its own member
		case name == metaLogLevel && l.modern, !strings.HasPrefix(name, wire.ReservedPrefix):
			members.Add(name, value)
		case name == metaLogLevel:
		default:
			return fmt.Errorf("_meta has a member %q, which belongs to another hop", name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("_meta: %w", err)
	}
	return members, token, nil
}

// requestMeta returns the members that every request of the latest revision has in its _meta.
func (l *Link) requestMeta(version string) (b wire.Object) {
	b.Add(sdk.MetaKeyProtocolVersion, wire.Quote(version))
	b.Add(sdk.MetaKeyClientInfo, l.clientInfo())
	b.Add(sdk.MetaKeyClientCapabilities, l.declaredCapabilities(version))
	return b
}

// declaredCapabilities returns the client's capabilities for a server of a
// revision: none if the client speaks a revision of the other kind.
func (l *Link) declaredCapabilities(version string) jsontext.Value {
	if l.peer.Protocol != "" && l.peer.Protocol >= statelessProtocol != (version >= statelessProtocol) {
		return jsontext.Value("{}")
	}
	return l.peer.Capabilities
}

// Notify sends a notification. The error is a [*LinkError], or says that it cannot be sent.
func (l *Link) Notify(ctx context.Context, method string, params []byte) error {
	if method == "" || method == methodCall {
		return errors.New("it is not a notification")
	}
	if params != nil {
		if err := wire.CheckObject(params); err != nil {
			return fmt.Errorf("the params of %s: %w", method, err)
		}
	}
	return l.sendOneWay(ctx, wire.Call(nil, nil, method, params))
}

// Answer answers a request of the server with a result or with an error object. The id is the
// server's. If the server no longer waits, because the request was answered or our request that it
// belongs to has ended, Answer sends nothing and returns no error.
func (l *Link) Answer(ctx context.Context, id, result, failed jsontext.Value) error {
	if (result == nil) == (failed == nil) {
		return errors.New("an answer is a result or an error")
	}
	if result != nil && !result.IsValid() || failed != nil && (!failed.IsValid() || failed.Kind() != '{') {
		return errors.New("the answer is not strict JSON")
	}
	if !l.requests.removeWaiting(id) {
		return nil
	}
	if failed != nil {
		return l.sendOneWay(ctx, wire.Failure(nil, id, failed))
	}
	return l.sendOneWay(ctx, wire.Response(nil, id, result))
}

// sendOneWay sends a message that gets no answer.
func (l *Link) sendOneWay(ctx context.Context, frame []byte) error {
	if f := l.fault(); f != nil {
		return f.linkError()
	}
	ctx, cancel := context.WithTimeout(ctx, l.up.server.ConnectTimeout)
	defer cancel()
	if f := l.conn.sendMessage(ctx, frame); f != nil {
		return f.linkError()
	}
	return nil
}

// sendRequest sends a request and waits for its answer. If ctx ends first, the server gets a
// cancellation. Over HTTP from 2026-07-28 on, the end of the connection cancels the request.
func (l *Link) sendRequest(ctx context.Context, q *query) outcome {
	switch f := l.fault(); {
	case f != nil:
		return failedWith(f)
	case l.polite.Load(): // the link is about to be closed
		return failedWith(&fault{code: CodeClosed, reason: errLinkClosed})
	}

	if q.method != methodListen { // a subscription never ends by itself
		l.calls.Add(1)
		defer l.endRequest()
	}

	if q.memory == nil {
		q.memory = l.u.Memory(l.peer.Owner)
		defer q.memory.Release()
	}

	o := l.conn.roundTrip(ctx, q)
	l.checkSession(q, o)
	l.requests.dropRequestsOf(q)
	if o.fault != nil && ctx.Err() != nil && l.mustCancel(q) {
		l.enqueueMessage(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"requestId":%d}}`, noteCancelled, q.id))
	}

	return o
}

// mustCancel reports whether the server must be told that the caller gives a request up.
func (l *Link) mustCancel(q *query) bool {
	switch {
	case l.ctx.Err() != nil, q.method == methodInitialize, q.method == methodDiscover:
		return false
	case l.modern && l.up.server.Type == TypeHTTP: // the closed connection says it
		return false
	case q.permit != nil: // otherwise the call has not left
		return q.permit.touched.Load()
	}
	return true
}

// A query is one request of ours that is under way.
type query struct {
	id     int64
	method string
	name   string            // value of the header Mcp-Name; empty: none
	frame  []byte            // the message
	permit *permit           // nil unless the message is a tools/call
	header map[string]string // additional headers, over HTTP only
	token  jsontext.Value    // the caller's progress token, raw; nil: the caller wants no progress
	asked  bool              // the server was asked for progress, with the id as the token
	on     func(wire.Message)
	clock  *deadline.Clock // nil: only a context limits its time
	memory *Memory         // reserved for the answer

	inbox chan incoming // messages that the [duplex] reader passes on
	gone  chan struct{} // closed when nobody reads inbox any more
}

// An outcome is the result of a request: an answer or a fault.
type outcome struct {
	incoming
	fault  *fault
	status int  // HTTP status, if not a success
	large  bool // the answer exceeds the size limit
}
