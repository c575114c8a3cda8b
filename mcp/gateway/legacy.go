package gateway

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A channel is the stream of a client of revision 2024-11-05, which posts its messages to another path and hears all answers here.
type channel struct {
	*pipe
	id string
}

// channels are those that are open.
type channels struct {
	mu   sync.Mutex
	byID map[string]*channel
	per  map[Identity]int
	all  int
	each int
}

func (c *channels) init(g *Gateway) {
	c.byID, c.per = make(map[string]*channel), make(map[Identity]int)
	c.all, c.each = g.options.Limits.Sessions, g.options.Limits.SessionsPerIdentity
}

// add makes a channel known. The error is errBusy.
func (c *channels) add(n *channel) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) >= c.all || c.per[n.from] >= c.each {
		return errBusy
	}
	c.byID[n.id] = n
	c.per[n.from]++
	return nil
}

func (c *channels) remove(n *channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, n.id)
	if c.per[n.from]--; c.per[n.from] == 0 {
		delete(c.per, n.from)
	}
}

// find returns the channel with an id, if it is this identity's at this endpoint. Another's is as unknown as none.
func (c *channels) find(id string, who Identity, at *endpoint) *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byID[id]
	if n == nil || n.from != who || n.at != at {
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

// openChannel answers with the stream of a new channel.
func (x *exchange) openChannel() *refusal {
	if _, stream := acceptable(x.r); !stream {
		return refuse(http.StatusNotAcceptable, refusedAccept, "a stream is text/event-stream, which the Accept header does not take")
	}
	if x.busy.closed() {
		return refusalOf(errDraining)
	}
	var frame []byte
	p := x.newPipe(x.r.Context(), x.from, x.at, func(message []byte) error {
		frame = appendEvent(frame[:0], eventMessage, "", message)
		x.allowWrite()
		_, err := x.w.Write(frame)
		if cap(frame) > maxFrame {
			frame = nil
		}
		return errors.Join(err, x.ctl.Flush())
	})
	p.over = x
	n := &channel{pipe: p, id: rand.Text()}
	if err := x.channels.add(n); err != nil {
		p.close()
		return refusalOf(err)
	}
	defer x.channels.remove(n)
	defer p.close() // before the handler returns: nothing may be written after that
	if n.begin(x) {
		n.keep(x)
	}
	return nil
}

// begin says where messages are to be posted.
func (n *channel) begin(x *exchange) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return x.stream([][]byte{appendEvent(nil, eventEndpoint, "", []byte(x.r.URL.EscapedPath()+"/messages?session="+n.id))})
}

// keep returns when the channel is over.
func (n *channel) keep(x *exchange) {
	beat := time.NewTicker(n.pace.beat)
	defer beat.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-beat.C:
			// A token that was taken back hears no more.
			if who, f := x.identify(x.r); f != nil || who != n.from || !n.beat(x) {
				return
			}
		}
	}
}

// beat gives a sign of life.
func (n *channel) beat(x *exchange) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended == nil && x.send([][]byte{[]byte(beatFrame)})
}

// postChannel takes one message of a client that has a channel. Its answer goes there.
func (x *exchange) postChannel() *refusal {
	if f := typed(x.r); f != nil {
		return f
	}
	n := x.channels.find(x.r.URL.Query().Get("session"), x.from, x.at)
	if n == nil {
		f := refuse(http.StatusNotFound, refusedNoSession, "this session is not known here, or is over; open a stream at "+pathSSE)
		f.code = codeNoSession
		return f
	}
	m, refused := x.message()
	if refused {
		return nil
	}
	if f := n.take(m, x.keep()); f != nil {
		x.refuse(f, m.ID)
		return nil
	}
	x.empty(http.StatusAccepted)
	return nil
}
