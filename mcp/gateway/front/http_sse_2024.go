package front

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
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

// streams holds the connections of clients of revision 2024-11-05, by id.
type streams struct {
	mu   sync.Mutex
	byID map[string]*connection
}

// add registers a connection and returns its id. The error is [session.ErrBusy].
func (s *streams) add(c *connection, limits session.Limits) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, other := range s.byID { // in any order: they are counted
		if other.from == c.from {
			count++
		}
	}
	if len(s.byID) >= limits.Sessions || count >= limits.SessionsPerIdentity {
		return "", session.ErrBusy
	}

	if s.byID == nil {
		s.byID = make(map[string]*connection)
	}
	id = rand.Text()
	s.byID[id] = c
	return id, nil
}

func (s *streams) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// find returns the connection with an id if this client opened it at this endpoint; else nil.
func (s *streams) find(id string, client session.Identity, endpoint string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byID[id]; c != nil && c.from == client && c.endpoint == endpoint {
		return c
	}
	return nil
}

func (s *streams) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byID { // in any order: all are ended
		c.cancel()
	}
}

// openStream answers with the stream of a new connection, and returns when the stream ends.
func (x *exchange) openStream() *refusal {
	if x.r.Method != http.MethodGet {
		return notAllowed(http.MethodGet)
	}
	if _, stream := accepts(x.r); !stream {
		return refuse(http.StatusNotAcceptable, refusedAccept, "a stream is text/event-stream, which the Accept header excludes")
	}
	if x.front.table.Requests.Stopped() {
		return refusalOf(session.ErrStopping)
	}

	c := newConnection(x.r.Context(), x.front, x.from, func(message []byte) error {
		x.extendWriteDeadline()
		_, err := x.w.Write(appendEvent(nil, session.Event{Name: session.EventMessage, Data: message}))
		return errors.Join(err, x.ctl.Flush())
	})
	c.endpoint, c.exchange = x.endpoint, x
	defer c.end()
	id, err := x.front.streams.add(c, x.front.table.Limits)
	if err != nil {
		return refusalOf(err)
	}
	defer x.front.streams.remove(id)

	x.setStreamHeader()
	path := x.r.URL.EscapedPath() + strings.TrimPrefix(pathMessages, pathSSE) + "?session=" + id
	if !c.writeFrame(appendEvent(nil, session.Event{Name: eventEndpoint, Data: []byte(path)})) {
		return nil
	}
	ticker := time.NewTicker(x.front.timeouts.keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return nil
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
	c := x.front.streams.find(x.r.URL.Query().Get("session"), x.from, x.endpoint)
	if c == nil {
		refused := refuse(http.StatusNotFound, refusedNoSession, "this session is unknown or has ended; open a stream at "+pathSSE)
		refused.code = codeNoSession
		return refused
	}

	q := &session.Request{Identity: x.identity, HTTP: x.r.Header}
	if !x.readMessage(&q.Message) {
		return nil
	}
	if refused := c.accept(q, x.transferBody()); refused != nil {
		x.refuse(refused, q.ID)
		return nil
	}
	x.writeStatus(http.StatusAccepted)
	return nil
}
