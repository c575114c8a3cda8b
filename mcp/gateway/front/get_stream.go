package front

import (
	"net/http"
	"time"

	"pgfsm/mcp/gateway/session"
)

// serveGet opens the stream of a session for messages that belong to none of its requests, or continues a stream after Last-Event-ID.
func (x *exchange) serveGet() *refusal {
	if _, stream := accepts(x.r); !stream {
		return streamNotAcceptable()
	}
	s, refused := x.findSession()
	if refused != nil {
		return refused
	}

	if x.front.table.Requests.Stopped() && s.Requests.Count() == 0 {
		return refusalOf(session.ErrStopping)
	}
	g := &getStream{exchange: x, session: s, log: &s.Outgoing, stream: s.Outgoing.General()}
	event := first(x.r.Header, headerLastEvent)
	if event == "" {
		if g.reader = g.log.Attach(g.stream, false); g.reader == nil {
			return refuse(http.StatusConflict, refusedStream, "another connection has this stream of the session")
		}
		defer g.log.Detach(g.stream, g.reader)
		g.run(g.log.Unread(g.stream), false)
		return nil
	}

	log, stream, next := s.FindEvent(event)
	if stream == nil {
		return eventsDropped()
	}
	events, last, complete := log.After(stream, next)
	if !complete {
		return eventsDropped()
	}

	g.log, g.stream = log, stream
	g.reader = log.Attach(stream, true)
	defer log.Detach(stream, g.reader)
	g.next = next + len(events)
	g.run(events, last)
	return nil
}

func streamNotAcceptable() *refusal {
	return refuse(http.StatusNotAcceptable, refusedAccept, "a stream is text/event-stream, which the Accept header excludes")
}

func eventsDropped() *refusal {
	return refuse(http.StatusBadRequest, refusedEvent, "the gateway does not keep the events after Last-Event-ID any more")
}

// A getStream is the event stream that answers a GET.
type getStream struct {
	exchange *exchange
	session  *session.Session
	log      *session.EventLog
	stream   *session.Stream
	reader   *session.Reader
	next     int // index of the next event in a continued answer
}

// sendRest sends the new events. It reports false at the end of an answer.
func (g *getStream) sendRest() bool {
	if g.log == &g.session.Outgoing {
		return g.sendEvents(g.log.Unread(g.stream))
	}
	events, last, complete := g.log.After(g.stream, g.next)
	g.next += len(events)
	return complete && g.sendEvents(events) && !last
}

func (g *getStream) sendEvents(events []session.Event) bool {
	frames := make([][]byte, len(events))
	for i, e := range events {
		frames[i] = appendEvent(nil, e)
	}
	return g.exchange.writeFrames(frames...)
}

// run begins the stream with events. Unless they are the last, it sends further events until the stream ends.
func (g *getStream) run(events []session.Event, last bool) {
	defer g.session.Touch()
	g.exchange.setStreamHeader()
	if len(events) == 0 && !g.exchange.writeFrames([]byte(keepAliveFrame)) { // a proxy may hold back a header without a body
		return
	}
	if !g.sendEvents(events) || last {
		return
	}

	ticker := time.NewTicker(g.exchange.front.timeouts.keepAlive)
	defer ticker.Stop()
	stopping := g.exchange.front.table.Requests.Stopping()
	for {
		select {
		case <-g.exchange.r.Context().Done():
			return
		case <-g.session.Context.Done():
			return
		case <-stopping:
			if g.session.Requests.Count() == 0 {
				return
			}
			stopping = nil // answers of requests under way may need this stream; the end of the session ends it
		case <-g.reader.Replaced:
			return
		case <-g.reader.Wake:
			if !g.sendRest() {
				return
			}
		case <-ticker.C:
			if !g.exchange.stillAuthenticated() || !g.exchange.writeFrames([]byte(keepAliveFrame)) {
				return
			}
		}
	}
}

// stillAuthenticated reports whether the token of a stream is still valid.
func (x *exchange) stillAuthenticated() bool {
	x.settings = x.front.active.Load() // the settings may have been replaced since the stream began
	client, _, refused := x.identify(x.r)
	return refused == nil && client == x.from
}
