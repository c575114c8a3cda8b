package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"pgfsm/mcp/wire"
)

// An answer is the response to a POST that holds a request. It is one JSON text if nothing was said before and it does not take long,
// else a stream that ends with it. It is the request's outlet.
type answer struct {
	*exchange
	request *request
	plain   bool // the client takes JSON

	mu    sync.Mutex
	begun bool // the stream has
	over  bool // nothing more is written
	gone  bool // the client
	trail *trail
	self  *reader // of the trail
	timer *time.Timer
}

var (
	errGone = errors.New("the client is gone")
	errOver = errors.New("the request was answered")
)

// watch begins a stream in time where it is useful: so that the client of a session has an event id, with which it can ask for the
// rest if the connection is lost; and so that the connection of any client shows signs of life.
func (a *answer) watch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.request.Method == methodInitialize {
		return // the header of its answer is not known before the answer
	}
	first := a.pace.beat
	if s := a.request.session; s != nil && s.protocol >= resumable {
		first = a.pace.prime
	}
	a.timer = time.AfterFunc(first, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.over {
			return
		}
		if !a.begun {
			a.begin()
			a.write(nil)
		} else {
			a.write([]byte(beatFrame))
		}
		a.timer.Reset(a.pace.beat)
	})
}

// Send says something before the answer. While the client of a session can come back it is not gone.
func (a *answer) Send(message []byte) error {
	defer a.waits(message).end()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.request.Method == methodInitialize {
		return errOver
	}
	if !a.begun {
		a.begin()
	}
	a.say(message, false)
	if a.gone && a.trail == nil {
		return errGone
	}
	return nil
}

// begin makes a stream of the answer. What it has to say first goes out with what is written next.
func (a *answer) begin() {
	a.begun = true
	h := a.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noCache, noSniff
	h["X-Accel-Buffering"] = []string{"no"}
	a.allowWrite()
	a.w.WriteHeader(http.StatusOK)
	s := a.request.session
	if s == nil {
		return
	}
	a.trail, a.self = s.trails.begin(), newReader()
	s.trails.attach(a.trail, a.self)
	if s.protocol >= resumable {
		if frame, mine := s.trails.add(a.trail, a.self, eventPrime, nil, false); mine {
			a.put(frame)
		}
	}
}

// say writes a message to the stream, to wherever its reader is.
func (a *answer) say(message []byte, last bool) {
	var frame []byte
	if a.trail != nil {
		var mine bool
		frame, mine = a.request.session.trails.add(a.trail, a.self, eventMessage, message, last)
		if !mine {
			a.gone = true // another connection has the stream now
			return
		}
	} else {
		frame = appendEvent(make([]byte, 0, len(message)+32), eventMessage, "", message)
	}
	if last { // it goes out when the handler returns, with the end of the stream
		a.put(frame)
		return
	}
	a.write(frame)
}

// put hands a frame to the connection.
func (a *answer) put(frame []byte) {
	if a.gone || a.r.Context().Err() != nil {
		a.gone = true
		return
	}
	a.allowWrite()
	if _, err := a.w.Write(frame); err != nil {
		a.gone = true
	}
}

// write hands a frame to the connection and sees it off.
func (a *answer) write(frame []byte) {
	a.put(frame)
	if !a.gone && a.ctl.Flush() != nil {
		a.gone = true
	}
}

// end sees to it that nothing more is written, also if a bug has kept the answer from being finished.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over = true; a.timer != nil {
		a.timer.Stop()
	}
}

// finish answers with a whole message. See [answer.end], too.
func (a *answer) finish(message []byte) {
	defer a.waits(message).end()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	q := a.request
	if message == nil { // a request is always answered
		message = wire.Failure(nil, q.ID, wire.ErrorObject(wire.InternalError, "there is no answer", nil))
	}
	if q.Method == methodInitialize && q.session != nil {
		a.w.Header()[headerSession] = []string{q.session.id}
	}
	switch {
	case a.begun:
		a.say(message, true)
		if a.trail != nil {
			q.session.trails.detach(a.trail, a.self)
		}
	case a.plain && !(streamFirst(a.r) && a.status(message) == http.StatusOK): // a stream has no other status
		a.exchange.plain(a.status(message), message)
	default:
		frame := appendEvent(make([]byte, 0, len(message)+32), eventMessage, "", message)
		h := a.w.Header()
		h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noCache, noSniff
		h["Content-Length"] = []string{strconv.Itoa(len(frame))}
		a.put(frame)
	}
}

// status is the HTTP status of an answer: in the stateless revisions errors of the protocol have their own.
func (a *answer) status(message []byte) int {
	if !a.request.modern() {
		return http.StatusOK
	}
	failed := wire.Response(make([]byte, 0, 64), a.request.ID, nil)
	at := len(failed) - len(`"result":}`)
	if len(message) <= at || string(message[at:at+2]) != `"e` { // of "error"
		return http.StatusOK
	}
	code, _ := number(wire.Member(wire.Member(message, "error"), "code"))
	switch code {
	case wire.MethodNotFound:
		return http.StatusNotFound
	case wire.InvalidParams, wire.InvalidRequest, wire.HeaderMismatch, wire.MissingCapability, wire.UnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func number(value []byte) (int64, error) { return strconv.ParseInt(string(value), 10, 64) }
