package front

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A response answers a POST with a request. It is one JSON text. If the gateway sends messages
// before the answer, or the answer takes long, it becomes an event stream that ends with the
// answer.
type response struct {
	exchange *exchange
	request  *session.Request

	mu       sync.Mutex
	streams  bool            // the event stream has begun
	finished bool            // nothing more is written
	gone     bool            // the client is gone, or reads the stream on another connection
	reader   *session.Reader // reader of the stream of a session's client
	timer    *time.Timer
}

// startTimer begins the event stream of a slow answer early. Then the client of a session has an
// event id, with which it can ask for the rest if the connection is lost, and every client sees
// signs of life.
func (a *response) startTimer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.request.Method == methodInitialize {
		return // the answer of initialize decides the header
	}

	delay := a.exchange.front.timeouts.keepAlive
	if s := a.request.Session; s != nil && s.Protocol >= resumable {
		delay = a.exchange.front.timeouts.firstEvent
	}

	a.timer = time.AfterFunc(delay, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.finished {
			return
		}
		if !a.streams {
			a.beginStream()
			a.flushFrame(nil)
		} else {
			a.flushFrame([]byte(keepAliveFrame))
		}
		a.timer.Reset(a.exchange.front.timeouts.keepAlive)
	})
}

// Send sends a message before the answer. The client of a session does not count as gone while it
// can still resume.
func (a *response) Send(message []byte) error {
	defer a.exchange.reserveWrite(message)()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished || a.request.Method == methodInitialize {
		return errGone
	}
	if !a.streams {
		a.beginStream()
	}
	a.sendEvent(message, false)
	if a.gone && a.reader == nil {
		return errGone
	}
	return nil
}

// beginStream begins the event stream. The next flush sends its first bytes.
func (a *response) beginStream() {
	a.streams = true
	a.exchange.setStreamHeader()
	a.exchange.writeStatus(http.StatusOK)

	s := a.request.Session
	if s == nil {
		return
	}
	a.reader = s.Answers.Begin()
	if s.Protocol >= resumable {
		if e, ours := s.Answers.Add(a.reader, session.EventPrime, nil, false); ours {
			a.writeFrame(appendEvent(nil, e))
		}
	}
}

// sendEvent sends a message on the stream, to the connection that reads it.
func (a *response) sendEvent(message []byte, last bool) {
	e := session.Event{Name: session.EventMessage, Data: message}
	if a.reader != nil {
		var ours bool
		if e, ours = a.request.Session.Answers.Add(a.reader, session.EventMessage, message, last); !ours {
			a.gone = true
			return
		}
	}
	if last { // net/http flushes the end of the response
		a.writeFrame(appendEvent(nil, e))
		return
	}
	a.flushFrame(appendEvent(nil, e))
}

// writeFrame passes a frame to the connection.
func (a *response) writeFrame(frame []byte) {
	if a.gone || a.exchange.r.Context().Err() != nil {
		a.gone = true
		return
	}
	a.exchange.extendWriteDeadline()
	if _, err := a.exchange.w.Write(frame); err != nil {
		a.gone = true
	}
}

// flushFrame writes a frame and sends all written bytes.
func (a *response) flushFrame(frame []byte) {
	a.writeFrame(frame)
	if !a.gone && a.exchange.ctl.Flush() != nil {
		a.gone = true
	}
}

// stopTimer ends the response if a panic kept writeAnswer from being called.
func (a *response) stopTimer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished = true; a.timer != nil {
		a.timer.Stop()
	}
}

// writeAnswer answers with a whole message.
func (a *response) writeAnswer(message []byte) {
	defer a.exchange.reserveWrite(message)()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true

	q := a.request
	if q.TokenRefused && !a.streams {
		a.exchange.writeRefusal(unauthorized("the token is not valid"), q.ID)
		return
	}
	if message == nil {
		message = noAnswer(q.ID)
	}

	if q.Method == methodInitialize && q.Session != nil {
		a.exchange.w.Header()[headerSession] = []string{q.Session.ID}
	}

	status := a.httpStatus(message)
	// A stream always has status 200.
	if !a.streams && status == http.StatusOK && prefersStream(a.exchange.r) {
		a.beginStream()
	}

	if !a.streams {
		a.exchange.writeJSON(status, message)
		return
	}

	a.sendEvent(message, true)
	if a.reader != nil {
		a.reader.Close()
	}
}

// noAnswer returns the error for a request that the dispatcher did not answer.
func noAnswer(id []byte) []byte {
	return wire.Failure(nil, id, wire.ErrorObject(wire.InternalError, "there is no answer", nil))
}

// httpStatus returns the HTTP status of an answer. Only the stateless revisions give some JSON-RPC
// errors a status of their own.
func (a *response) httpStatus(message []byte) int {
	if a.request.Protocol < session.Stateless {
		return http.StatusOK
	}
	failure := wire.Failure(nil, a.request.ID, nil)
	if !bytes.HasPrefix(message, failure[:len(failure)-1]) {
		return http.StatusOK
	}
	code, _ := strconv.ParseInt(string(wire.Member(wire.Member(message, "error"), "code")), 10, 64)
	switch code {
	case wire.MethodNotFound:
		return http.StatusNotFound
	case wire.InvalidParams, wire.InvalidRequest, wire.HeaderMismatch, wire.MissingCapability, wire.UnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// prefersStream reports whether the Accept header names event streams first, as the conformance
// suite does. The clients of the SDKs name JSON first.
func prefersStream(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return strings.TrimSpace(kind) == "text/event-stream"
}

// writeJSON answers with one JSON text.
func (x *exchange) writeJSON(status int, body []byte) { x.writeBody(status, mediaJSON, body) }

// mediaJSON is the media type of nearly all answers.
const mediaJSON = "application/json"

// writeBody answers with a body of a media type. No cache may keep it.
func (x *exchange) writeBody(status int, media string, body []byte) {
	h := x.w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	x.writeStatus(status)
	_, _ = x.w.Write(body) // an error means that the client has gone
}
