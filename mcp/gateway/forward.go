package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A forward is a request of a client that one server answers: a [toolCall] or a [relayedRequest].
type forward struct {
	gateway *Gateway
	q       *request // the first request of a client that repeats it
	server  *server
	target  string // the tool, or the method
	out     *session.RequestSender
	pending *ask.Pending // nil: the server cannot ask, or asks a session
	answer  Answer
	info    resultInfo // of a native result
}

func (g *Gateway) newForward(q *request, server *server, target string) forward {
	return forward{gateway: g, q: q, server: server, target: target, out: session.NewRequestSender(q.Out)}
}

// Size is how many bytes the answer has.
func (f *forward) Size() int { return len(f.answer.Result) + len(f.answer.Error) }

// Fail answers after a panic.
func (f *forward) Fail() { f.answer = Answer{Error: invalid(wire.InternalError, "there is no answer")} }

// setAnswer sets the answer, and reads it if it is native.
func (f *forward) setAnswer(a Answer) {
	if f.answer = a; a.Native {
		f.answer.Result = wire.StripOwn(a.Result)
		f.info = readResult(f.answer.Result)
	}
}

// relayResult answers with the server's result. A code says why the result does not go to the client.
func (f *forward) relayResult(q *request, cacheable bool) (message []byte, code, why string) {
	if !f.info.isObject {
		return q.refuse(wire.InternalError, "server %s: its result is not a JSON object", f.server.Name), "", ""
	}
	if code, why = q.checkResult(f.server, &f.info); code != "" {
		return nil, code, why
	}
	if !q.stateless() {
		return q.rawResult(f.info.rewrite(f.answer.Result, nil, false)), "", ""
	}
	seal := f.gateway.sealState(q, f.server, f.target, &f.info)
	return q.rawResult(f.info.rewrite(f.answer.Result, f.gateway.self, cacheable, seal...)), "", ""
}

// startPending starts work whose server may ask the client, which is stateless.
func (f *forward) startPending(ctx context.Context, w ask.Work) []byte {
	c := f.q.caller()
	f.pending = f.gateway.asks.NewPending(c, f.server.Name, f.target, f.out, w)
	f.q.using.Retain() // until the work ends, which may be after this request
	asks, answer := f.pending.Start(upstreamContext(ctx, f.server), c)
	if asks != nil {
		return f.q.result(asks)
	}
	return answer
}

// releasePending releases what startPending has retained.
func (f *forward) releasePending() {
	if f.pending != nil {
		f.q.using.Release()
	}
}

// resumePending continues a pending request if the client brings its state back; ours reports whether it does.
func (g *Gateway) resumePending(ctx context.Context, q *request, server *server, target string, in clientInput) (message []byte, ours bool) {
	id, ours := q.ownState(ask.StatePending, server, target, in)
	if !ours {
		return nil, false
	}
	asks, answer, failed := g.asks.Resume(upstreamContext(ctx, server), q.caller(), id, in.responses)
	switch {
	case failed != nil:
		return q.fail(failed), true
	case asks != nil:
		return q.result(asks), true
	}
	return answer, true
}

// caller is the request as package ask needs it.
func (q *request) caller() ask.Caller {
	c := ask.Caller{Request: q.Request, Capabilities: q.capabilities()}
	if q.Out != nil {
		c.Out = &resumedSender{q.Out, wire.ProgressToken(wire.Member(q.Params, "_meta")), q.wantedLogLevel()}
	}
	return c
}

// A resumedSender sends what a pending request's server sends to the request that continues it. The server sends what the first request
// asked for; this request may want another progress token and another log level.
type resumedSender struct {
	session.Sender
	token jsontext.Value // nil: no progress
	level severity       // zero: no log
}

// Send sends a message that the request wants. It returns no error for the others.
func (s *resumedSender) Send(message []byte) error {
	m, err := wire.Read(message)
	if err != nil {
		return err
	}
	switch m.Method {
	case "notifications/progress":
		if s.token == nil {
			return nil
		}
		params, err := wire.Set(m.Params, "progressToken", s.token)
		if err != nil {
			return err
		}
		message = wire.Call(nil, nil, m.Method, params)
	case "notifications/message":
		if !s.level.includes(m.Params) {
			return nil
		}
	}
	return s.Sender.Send(message)
}

// serverMayAsk reports whether the server may send questions to the client of a stateless request.
func (g *Gateway) serverMayAsk(ctx context.Context, q *request, server *server) bool {
	if q.session != nil || server.Expose&(ExposeSampling|ExposeElicitation|ExposeRoots) == 0 || string(q.capabilitiesFor(server)) == `{}` {
		return false
	}
	if _, known := g.pool.offersOf(server); !known {
		g.offersNow(ctx, q, server)
	}
	return g.pool.knownStateful(server)
}

// capabilitiesFor is what a server learns of the client's capabilities.
func (q *request) capabilitiesFor(server *server) jsontext.Value {
	return forServer(q.capabilities(), server)
}

// forServer is what a server learns of a client's capabilities: those that the operator exposes.
func forServer(c ask.Capabilities, server *server) jsontext.Value {
	e := server.Expose
	return c.ForServer(e.Has(ExposeSampling), e.Has(ExposeElicitation), e.Has(ExposeRoots))
}

// upstreamContext is the context of a request at its server. A server whose cancellation is not exposed does not learn of it.
func upstreamContext(ctx context.Context, server *server) context.Context {
	if server.Expose.Has(ExposeCancellation) {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
