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
	if x.table.Requests.Stopped() && s.Requests.Count() == 0 {
		return refusalOf(session.ErrStopping)
	}
	g := &getStream{exchange: x, session: s, stream: s.Events.General()}
	event := first(x.r.Header, headerLastEvent)
	if event == "" {
		if g.reader, _ = s.Outgoing.Attach(false); g.reader == nil {
			return refuse(http.StatusConflict, refusedStream, "another connection has this stream of the session")
		}
		defer s.Outgoing.Detach(g.reader)
		g.run(nil, false, g.sendOutgoing)
		return nil
	}
	if g.stream, g.next = s.Events.Find(event); g.stream == nil {
		return eventsDropped()
	}
	events, last, complete := s.Events.After(g.stream, g.next)
	if !complete {
		return eventsDropped()
	}
	if g.stream == s.Events.General() {
		g.reader, _ = s.Outgoing.Attach(true)
		defer s.Outgoing.Detach(g.reader)
		g.run(events, false, g.sendOutgoing)
		return nil
	}
	g.reader = session.NewReader()
	s.Events.Attach(g.stream, g.reader)
	defer s.Events.Detach(g.stream, g.reader)
	g.next += len(events)
	g.run(events, last, g.sendRest)
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
	*exchange
	session *session.Session
	stream  *session.Stream
	reader  *session.Reader
	next    int // index of the next event of a continued stream
}

// sendOutgoing sends the session's outgoing messages.
func (g *getStream) sendOutgoing() bool {
	var events []session.Event
	for _, message := range g.session.Outgoing.Take() {
		e, _ := g.session.Events.Add(g.stream, nil, eventMessage, message, false)
		events = append(events, e)
	}
	return g.sendEvents(events)
}

// sendRest sends the events of an answer that came since. It reports false at the end of the answer.
func (g *getStream) sendRest() bool {
	events, last, complete := g.session.Events.After(g.stream, g.next)
	g.next += len(events)
	return complete && g.sendEvents(events) && !last
}

func (g *getStream) sendEvents(events []session.Event) bool {
	frames := make([][]byte, len(events))
	for i, e := range events {
		frames[i] = appendEvent(nil, e)
	}
	return g.writeFrames(frames...)
}

// run begins the stream with events. Unless they are the last, it calls send whenever there may be something to send, until send reports
// false or the stream ends.
func (g *getStream) run(events []session.Event, last bool, send func() bool) {
	defer g.session.Touch()
	g.setStreamHeader()
	if len(events) == 0 && !g.writeFrames([]byte(keepAliveFrame)) { // a proxy may hold back a header without a body
		return
	}
	if !g.sendEvents(events) || last {
		return
	}
	ticker := time.NewTicker(g.timeouts.keepAlive)
	defer ticker.Stop()
	stopping := g.table.Requests.Stopping()
	for {
		select {
		case <-g.r.Context().Done():
			return
		case <-g.session.Context.Done():
			return
		case <-stopping:
			if g.session.Requests.Count() == 0 {
				return
			}
			stopping = nil // the answers of requests under way may come on this stream only; the end of the session ends it
		case <-g.reader.Replaced:
			return
		case <-g.reader.Wake:
			if !send() {
				return
			}
		case <-ticker.C:
			if !g.stillAuthenticated() || !g.writeFrames([]byte(keepAliveFrame)) {
				return
			}
		}
	}
}

// stillAuthenticated reports whether the token of a stream is still valid.
func (x *exchange) stillAuthenticated() bool {
	x.settings = x.active.Load() // they may have been replaced since the stream began
	client, _, refused := x.identify(x.r)
	return refused == nil && client == x.from
}
