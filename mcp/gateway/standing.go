package gateway

import (
	"net/http"
	"time"
)

// get opens the stream of a session on which it hears what belongs to none of its requests, or takes up one again that was lost.
func (x *exchange) get() *refusal {
	if _, stream := acceptable(x.r); !stream {
		return refuse(http.StatusNotAcceptable, refusedAccept, "a stream is text/event-stream, which the Accept header does not take")
	}
	id := x.r.Header.Get(headerSession)
	if id == "" {
		return refuse(http.StatusBadRequest, refusedSessionless, "the header Mcp-Session-Id is missing")
	}
	s, f := x.session(id, x.r.Header.Get(headerVersion))
	if f != nil {
		return f
	}
	if x.busy.closed() && s.requests.count() == 0 {
		return refusalOf(errDraining)
	}
	l := &listening{exchange: x, session: s, trail: s.trails.standing()}
	event := x.r.Header.Get(headerLastEvent)
	if event == "" {
		if l.self, _ = s.outside.attach(false); l.self == nil {
			return refuse(http.StatusConflict, refusedStream, "the session has this stream already, on another connection")
		}
		defer s.outside.detach(l.self)
		return l.hear(nil)
	}
	if l.trail, l.next = s.trails.find(event); l.trail == nil {
		return notKept()
	}
	frames, last, ok := s.trails.after(l.trail, l.next)
	if !ok {
		return notKept()
	}
	if l.trail == s.trails.standing() {
		l.self, _ = s.outside.attach(true)
		defer s.outside.detach(l.self)
		return l.hear(frames)
	}
	l.self = newReader()
	s.trails.attach(l.trail, l.self)
	defer s.trails.detach(l.trail, l.self)
	return l.resume(frames, last)
}

func notKept() *refusal {
	return refuse(http.StatusBadRequest, refusedEvent, "what came after the event that Last-Event-ID names is not kept here any more")
}

// A listening is a GET with a stream as its answer.
type listening struct {
	*exchange
	session *session
	trail   *trail
	self    *reader
	next    int // the index of the next event, of a stream that is taken up again
}

// stream begins a stream with frames. False: the client is gone.
func (x *exchange) stream(frames [][]byte) bool {
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noCache, noSniff
	h["X-Accel-Buffering"] = []string{"no"}
	if len(frames) == 0 {
		frames = [][]byte{[]byte(beatFrame)} // a proxy may hold back a header that nothing follows
	}
	return x.send(frames)
}

// send writes frames. False: the client is gone, or does not read.
func (x *exchange) send(frames [][]byte) bool {
	defer x.waits(frames...).end()
	for _, frame := range frames {
		x.allowWrite()
		if _, err := x.w.Write(frame); err != nil {
			return false
		}
	}
	return len(frames) == 0 || x.ctl.Flush() == nil
}

// hear tells the client what is pushed, until either of them or another connection ends it.
func (l *listening) hear(frames [][]byte) *refusal {
	defer l.session.touch()
	if !l.stream(frames) {
		return nil
	}
	l.turn(func() bool {
		var frames [][]byte
		for _, message := range l.session.outside.take() {
			frame, _ := l.session.trails.add(l.trail, nil, eventMessage, message, false)
			frames = append(frames, frame)
		}
		return l.send(frames)
	})
	return nil
}

// resume tells the client the rest of the answer to a request of its.
func (l *listening) resume(frames [][]byte, last bool) *refusal {
	defer l.session.touch()
	if !l.stream(frames) || last {
		return nil
	}
	l.next += len(frames)
	l.turn(func() bool {
		frames, last, ok := l.session.trails.after(l.trail, l.next)
		l.next += len(frames)
		return ok && l.send(frames) && !last
	})
	return nil
}

// turn calls more whenever there may be something new, until it returns false or the stream is over.
func (l *listening) turn(more func() bool) {
	beat := time.NewTicker(l.pace.beat)
	defer beat.Stop()
	ending := l.busy.ending
	for {
		select {
		case <-l.r.Context().Done():
			return
		case <-l.session.ctx.Done():
			return
		case <-ending:
			if l.session.requests.count() == 0 {
				return
			}
			ending = nil // what is under way may be answered only here; the end of the session ends this, too
		case <-l.self.gone:
			return
		case <-l.self.wake:
			if !more() {
				return
			}
		case <-beat.C:
			// A token that was taken back hears no more.
			if who, f := l.identify(l.r); f != nil || who != l.from || !l.send([][]byte{[]byte(beatFrame)}) {
				return
			}
		}
	}
}
