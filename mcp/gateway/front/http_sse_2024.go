package front

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// channels holds the connections of clients of revision 2024-11-05, by id. Such a client posts its messages to another path and reads all
// answers on the event stream.
type channels struct {
	mu        sync.Mutex
	byID      map[string]*connection
	all, each int
}

func (c *channels) init(l session.Limits) {
	c.byID, c.all, c.each = make(map[string]*connection), l.Sessions, l.SessionsPerIdentity
}

// add registers a channel and returns its id. The error is [session.ErrBusy].
func (c *channels) add(n *connection) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, other := range c.byID { // in any order: they are counted
		if other.from == n.from {
			count++
		}
	}
	if len(c.byID) >= c.all || count >= c.each {
		return "", session.ErrBusy
	}

	id = rand.Text()
	c.byID[id] = n
	return id, nil
}

func (c *channels) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// find returns the channel with this id if this client opened it at this endpoint; else nil.
func (c *channels) find(id string, client session.Identity, endpoint string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byID[id]
	if n == nil || n.from != client || n.endpoint != endpoint {
		return nil
	}
	return n
}

func (c *channels) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.byID { // in any order: all are ended
		n.cancel()
	}
}

// openChannel answers with the stream of a new channel, and returns when the stream ends.
func (x *exchange) openChannel() *refusal {
	if _, stream := accepts(x.r); !stream {
		return streamNotAcceptable()
	}
	if x.front.table.Requests.Stopped() {
		return refusalOf(session.ErrStopping)
	}
	n := x.front.newConnection(x.r.Context(), x.from, x.endpoint, func(message []byte) error {
		x.extendWriteDeadline()
		_, err := x.w.Write(appendEvent(nil, session.Event{Name: session.EventMessage, Data: message}))
		return errors.Join(err, x.ctl.Flush())
	})
	n.exchange = x
	defer n.close() // nothing may be written after the handler has returned
	id, err := x.front.channels.add(n)
	if err != nil {
		return refusalOf(err)
	}
	defer x.front.channels.remove(id)

	x.setStreamHeader()
	path := x.r.URL.EscapedPath() + "/messages?session=" + id
	if !n.writeFrame(appendEvent(nil, session.Event{Name: eventEndpoint, Data: []byte(path)})) {
		return nil
	}
	ticker := time.NewTicker(x.front.timeouts.keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return nil
		case <-ticker.C:
			if !x.stillAuthenticated() || !n.writeFrame([]byte(keepAliveFrame)) {
				return nil
			}
		}
	}
}

// writeFrame writes an event that is not a message to the channel.
func (c *connection) writeFrame(frame []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.exchange.writeFrames(frame)
}

// postToChannel accepts one message of a client. Its answer goes to the channel.
func (x *exchange) postToChannel() *refusal {
	if refused := checkContentType(x.r); refused != nil {
		return refused
	}
	n := x.front.channels.find(x.r.URL.Query().Get("session"), x.from, x.endpoint)
	if n == nil {
		f := refuse(http.StatusNotFound, refusedNoSession, "this session is unknown or has ended; open a stream at "+pathSSE)
		f.code = codeNoSession
		return f
	}
	var m wire.Message
	if !x.readMessage(&m) {
		return nil
	}
	if refused := n.accept(m, x.r.Header, x.identity, x.transferBody()); refused != nil {
		x.refuse(refused, m.ID)
		return nil
	}
	x.writeStatus(http.StatusAccepted)
	return nil
}
