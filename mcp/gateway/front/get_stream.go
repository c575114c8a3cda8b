package front

import (
	"net/http"
	"time"

	"pgfsm/mcp/gateway/session"
)

// serveGet opens the stream of a session for messages that belong to none of its requests, or
// continues a stream after Last-Event-ID.
func (x *exchange) serveGet() *refusal {
	if _, stream := acceptedTypes(x.r); !stream {
		return newRefusal(http.StatusNotAcceptable, refusedAccept,
			"a stream is text/event-stream, which the Accept header excludes")
	}
	s, refused := x.findSession()
	if refused != nil {
		return refused
	}

	if x.front.table.Requests.Stopped() && s.Requests.Count() == 0 {
		return refusalOf(session.ErrStopping)
	}

	var reader *session.Reader
	if event := x.r.Header.Get(headerLastEvent); event == "" {
		if reader = s.Listen(); reader == nil {
			return newRefusal(http.StatusConflict, refusedStream, "another connection has this stream of the session")
		}
	} else if reader = s.Resume(event); reader == nil {
		return newRefusal(http.StatusBadRequest, refusedEvent,
			"the gateway does not keep the events after Last-Event-ID any more")
	}

	defer s.Touch()
	defer reader.Close()
	x.writeStream(s, reader)

	return nil
}

// writeStream writes the events of a stream until it ends, or the client is gone.
func (x *exchange) writeStream(s *session.Session, reader *session.Reader) {
	x.setStreamHeader()
	if !x.writeFrames([]byte(keepAliveFrame)) { // a proxy may hold back a header without a body
		return
	}

	ticker := time.NewTicker(x.front.timeouts.keepAlive)
	defer ticker.Stop()
	stopping := x.front.table.Requests.Stopping()

	for {
		select {
		case <-x.r.Context().Done():
			return
		case <-s.Context.Done():
			return
		case <-stopping:
			if s.Requests.Count() == 0 {
				return
			}
			// Answers of requests under way may need this stream; the end of the session ends it.
			stopping = nil
		case <-reader.Replaced:
			return
		case <-reader.Wake:
			events, more := reader.Read()
			var frames [][]byte
			for _, e := range events {
				frames = append(frames, appendEvent(nil, e))
			}
			if !x.writeFrames(frames...) || !more {
				return
			}
		case <-ticker.C:
			if !x.stillAuthenticated() || !x.writeFrames([]byte(keepAliveFrame)) {
				return
			}
		}
	}
}

// stillAuthenticated reports whether the token of a stream is still valid.
func (x *exchange) stillAuthenticated() bool {
	x.settings = x.front.active.Load() // the settings may have been replaced since the stream began
	client, _, refused := x.authenticate(x.r)
	return refused == nil && client == x.from
}
