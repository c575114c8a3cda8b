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

// A channel is the event stream of a client of revision 2024-11-05. The client posts its messages to another path and reads all answers on
// the stream.
type channel struct {
	*connection
	id string
}

// channels are the open channels.
type channels struct {
	mu        sync.Mutex
	byID      map[string]*channel
	all, each int
}

func (c *channels) init(l session.Limits) {
	c.byID, c.all, c.each = make(map[string]*channel), l.Sessions, l.SessionsPerIdentity
}

// add registers a channel. The error is [session.ErrBusy].
func (c *channels) add(n *channel) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := 0
	for _, other := range c.byID { // in any order: they are counted
		if other.from == n.from {
			same++
		}
	}
	if len(c.byID) >= c.all || same >= c.each {
		return session.ErrBusy
	}
	c.byID[n.id] = n
	return nil
}

func (c *channels) remove(n *channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, n.id)
}

// find returns the channel with an id if this client opened it at this endpoint; nil for any other.
func (c *channels) find(id string, client session.Identity, endpoint string) *channel {
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

// openChannel answers with the stream of a new channel, and returns when that ends.
func (x *exchange) openChannel() *refusal {
	if _, stream := accepts(x.r); !stream {
		return streamNotAcceptable()
	}
	if x.table.Requests.Stopped() {
		return refusalOf(session.ErrStopping)
	}
	n := &channel{id: rand.Text()}
	n.connection = x.newConnection(x.r.Context(), x.from, x.endpoint, func(message []byte) error {
		x.extendWriteDeadline()
		_, err := x.w.Write(appendEvent(nil, session.Event{Name: eventMessage, Data: message}))
		return errors.Join(err, x.ctl.Flush())
	})
	n.exchange = x
	if err := x.channels.add(n); err != nil {
		n.close()
		return refusalOf(err)
	}
	defer x.channels.remove(n)
	defer n.close() // nothing may be written after the handler has returned
	x.setStreamHeader()
	path := x.r.URL.EscapedPath() + "/messages?session=" + n.id
	if !n.writeFrame(appendEvent(nil, session.Event{Name: eventEndpoint, Data: []byte(path)})) {
		return nil
	}
	ticker := time.NewTicker(x.timeouts.keepAlive)
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

// writeFrame writes an event that is no message.
func (n *channel) writeFrame(frame []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err == nil && n.exchange.writeFrames(frame)
}

// postToChannel takes one message of a client. Its answer goes to the channel.
func (x *exchange) postToChannel() *refusal {
	if refused := checkContentType(x.r); refused != nil {
		return refused
	}
	n := x.channels.find(x.r.URL.Query().Get("session"), x.from, x.endpoint)
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
