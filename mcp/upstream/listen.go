package upstream

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Over stdio and SSE a server can speak at any time. Over streamable HTTP it can only answer, unless the client keeps a
// stream open for it: a GET in the revisions from 2025-03-26 to 2025-11-25. From 2026-07-28 on a client has to ask,
// over every transport, with the request "subscriptions/listen". The SDK's way to do either holds up the handshake, so
// it is done here, beside everything else: nothing ever waits for it, and whatever a server does about the request,
// short of lying on the stream itself, costs nothing but the news.

// listenID is the id of our subscriptions/listen, far from those that the SDK counts up.
const listenID = 1 << 40

// getStream is the first revision in which a client may GET a stream.
const getStream = "2025-03-26"

const (
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
)

// A listener is the state of a session's stream of news.
type listener struct {
	info      Info
	announced atomic.Bool // the server says that it announces changes of its tools
	busy      atomic.Bool // the stream is open, or will never be
	running   sync.WaitGroup

	ctx  context.Context // its end closes the stream
	stop context.CancelFunc
}

// listen opens the stream of news in the background, unless it is open, or the server has nothing to say on it.
func (s *session) listen(ctx context.Context) {
	version := *s.protocol.Load()
	overHTTP := s.server.Type == TypeHTTP
	switch {
	case !s.news.announced.Load() || version < statelessProtocol && (!overHTTP || version < getStream):
	case !s.news.busy.CompareAndSwap(false, true):
	case overHTTP:
		s.news.running.Go(func() { s.news.busy.Store(!s.follow(version)) })
	default:
		// What comes of it arrives among the other messages. An error ends the session, or is met by the listing.
		ask := &jsonrpc.Request{Method: methodListen, Params: s.subscription(version)}
		ask.ID, _ = jsonrpc.MakeID(float64(listenID))
		_ = s.guard.Connection.Write(ctx, ask)
	}
}

// subscription is the params of subscriptions/listen.
func (s *session) subscription(version string) []byte {
	var p struct {
		Meta struct {
			Version      string         `json:"io.modelcontextprotocol/protocolVersion"`
			Client       implementation `json:"io.modelcontextprotocol/clientInfo"`
			Capabilities struct{}       `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
		Notifications struct {
			Tools bool `json:"toolsListChanged"`
		} `json:"notifications"`
	}
	p.Meta.Version, p.Meta.Client = version, implementation(s.news.info)
	p.Notifications.Tools = true
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a bool
	}
	return b
}

// follow opens the stream over HTTP and reads it to its end. It reports whether it is worth asking again: a server that
// has answered with anything but a stream has none, and a redirect is not followed.
func (s *session) follow(version string) (again bool) {
	req, sent, err := s.streamRequest(version)
	if err != nil {
		return false
	}
	resp, err := s.http.pooled.RoundTrip(s.http.dressed(req, sent, nil))
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		return false
	}
	events := newEventFilter(resp.Body, s.limits.frame(), func(data []byte) error { return s.overhear(data, sent.id) })
	events.tooLarge = s.tooLarge
	for { // every event counts, also those that hold nothing
		if events.next() != nil || s.tolerate(s.limits.Unasked) != nil {
			return true
		}
		events.out = events.out[:0]
	}
}

func (s *session) streamRequest(version string) (*http.Request, outgoing, error) {
	var sent outgoing
	method := http.MethodGet
	if version >= statelessProtocol {
		method = http.MethodPost
		sent.id = listenID
		sent.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`,
			int64(listenID), methodListen, s.subscription(version))
	}
	req, err := http.NewRequestWithContext(s.news.ctx, method, s.server.URL, nil)
	if err != nil {
		return nil, sent, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if sent.body != nil {
		req.Header.Set("Accept", "application/json, text/event-stream") // both are asked for of every POST
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(methodHeader, methodListen)
	}
	if id := s.guard.SessionID(); id != "" {
		req.Header.Set(sessionHeader, id)
	}
	return req, sent, nil
}

// overhear judges a message of the stream. Answers to our requests come where they were asked for, never here; only the
// request that opened the stream, if want is its id, is answered when the stream is over.
func (s *session) overhear(data []byte, want int64) error {
	if err := s.inspect(data, want); err != nil {
		return err
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return s.fail(CodeProtocol, "it sent what is not a JSON-RPC message: %v", err)
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok && want != 0:
		return io.EOF
	case !ok:
		return s.fail(CodeProtocol, "it answered a request on a stream that is not for answers")
	}
	if !req.IsCall() {
		return nil
	}
	answer := &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}
	if req.Method != methodPing {
		answer.Result = nil
		answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "it is not supported"}
	}
	ctx, cancel := context.WithTimeout(s.news.ctx, s.server.ConnectTimeout)
	defer cancel()
	return s.guard.Connection.Write(ctx, answer)
}
