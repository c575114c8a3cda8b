package front

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"pgfsm/mcp/gateway/session"
)

// Paths of the HTTP+SSE transport of revision 2024-11-05, or their last elements. A client reads an
// event stream at the first, and posts its messages to the second.
const (
	pathSSE      = "/sse"
	pathMessages = "/sse/messages"
)

// eventEndpoint is the name of the event with the path to which a client posts its messages.
const eventEndpoint = "endpoint"

// endpointPath returns the path of the endpoint to which a path belongs: messages are posted to a
// path below the endpoint of their stream.
func endpointPath(path string) string {
	if prefix, ok := strings.CutSuffix(path, pathMessages); ok {
		return prefix + pathSSE
	}
	return path
}

// findStream returns the connection of the stream with an id if this client opened it at this
// endpoint; else nil.
func (x *exchange) findStream(id string) *connection {
	value, _ := x.front.streams.Load(id)
	c, _ := value.(*connection)
	if c == nil || c.from != x.from || c.endpoint != x.endpoint {
		return nil
	}
	return c
}

// openStream answers with the stream of a new connection, and returns when the stream ends.
func (x *exchange) openStream() *refusal {
	if x.r.Method != http.MethodGet {
		return notAllowed(http.MethodGet)
	}
	if _, stream := acceptedTypes(x.r); !stream {
		return newRefusal(http.StatusNotAcceptable, refusedAccept,
			"a stream is text/event-stream, which the Accept header excludes")
	}
	if x.front.table.Requests.Stopped() {
		return refusalOf(session.ErrStopping)
	}
	if err := x.front.table.Streams.Enter(x.from); err != nil {
		return refusalOf(err)
	}
	defer x.front.table.Streams.Leave(x.from)

	c := newConnection(x.r.Context(), x.front, x.from, func(message []byte) error {
		x.extendWriteDeadline()
		_, err := x.w.Write(appendEvent(nil, session.Event{Name: session.EventMessage, Data: message}))
		return errors.Join(err, x.ctl.Flush())
	})

	c.endpoint, c.exchange = x.endpoint, x
	defer c.end()
	id := rand.Text()
	x.front.streams.Store(id, c)
	defer x.front.streams.Delete(id)

	x.setStreamHeader()
	path := x.r.URL.EscapedPath() + strings.TrimPrefix(pathMessages, pathSSE) + "?session=" + id
	if !c.writeFrame(appendEvent(nil, session.Event{Name: eventEndpoint, Data: []byte(path)})) {
		return nil
	}

	// Until the client goes, the stream only carries what other requests send; signs of life keep
	// proxies from closing it.
	ticker := time.NewTicker(x.front.timeouts.keepAlive)
	defer ticker.Stop()
	stopping := x.front.table.Requests.Stopping()

	for {
		select {
		case <-c.ctx.Done():
			return nil
		case <-stopping:
			if c.session.Load() == nil {
				return nil
			}
			stopping = nil // the end of the session ends the stream
		case <-ticker.C:
			if !x.stillAuthenticated() || !c.writeFrame([]byte(keepAliveFrame)) {
				return nil
			}
		}
	}
}

// writeFrame writes an event that is no message. It reports false if the client is gone.
func (c *connection) writeFrame(frame []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.exchange.writeFrames(frame)
}

// end ends the connection with its session and its requests. When it returns, nothing more is
// written: an HTTP handler that has returned must not write.
func (c *connection) end() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errGone
}

// postToStream accepts one message of a client. Its answer goes to the stream.
func (x *exchange) postToStream() *refusal {
	if x.r.Method != http.MethodPost {
		return notAllowed(http.MethodPost)
	}
	if refused := checkContentType(x.r); refused != nil {
		return refused
	}
	c := x.findStream(x.r.URL.Query().Get("session"))
	if c == nil {
		refused := newRefusal(http.StatusNotFound, refusedNoSession,
			"this session is unknown or has ended; open a stream at "+pathSSE)
		refused.code = codeNoSession
		return refused
	}

	q := &session.Request{Identity: x.identity, HTTP: x.r.Header}
	if !x.readMessage(&q.Message) {
		return nil
	}
	if refused := c.handleMessage(q, x.transferBody()); refused != nil {
		x.writeRefusal(refused, q.ID)
		return nil
	}

	x.writeStatus(http.StatusAccepted)
	return nil
}
