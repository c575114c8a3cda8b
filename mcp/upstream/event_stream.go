package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds of streams.
const (
	// drainTime is the time that a stream gets to end after its answer. Then the connection is
	// closed. Most servers end the stream at once.
	drainTime = time.Second
	// maxResumes bounds the resumptions of one stream. Some servers close a stream every few
	// seconds and expect that.
	maxResumes = 100
	// Time before a stream is resumed: the default, and the bounds of the server's choice.
	resumeWait, leastResumeWait, mostResumeWait = time.Second, 10 * time.Millisecond, 30 * time.Second
)

// readStream reads events up to the answer. Another goroutine reads the events after it.
func (h *httpConn) readStream(ctx context.Context, span *requestContext, resp *http.Response, q *query) outcome {
	body := &responseBody{ReadCloser: resp.Body}
	hold := q.answerHolder(span.ctx)
	if q.method == methodListen { // a subscription may take any time
		hold = h.l.timedHolder(span.ctx, q.memory, pauseNone)
		defer func() { _ = hold(0) }()
	}

	events := newEventReader(body, h.l.maxFrame, hold)
	o, cut := h.awaitAnswer(ctx, events, q)

	// A cut stream is continued with GETs, which repeat nothing.
	for n := 0; cut && n < maxResumes; n++ {
		resumed := h.resumeStream(span.ctx, events)
		if resumed == nil {
			break
		}
		body.Close()
		body = &responseBody{ReadCloser: resumed.Body}
		events.resume(body)
		o, cut = h.awaitAnswer(ctx, events, q)
	}

	closeStream := func() {
		body.Close()
		span.release()
	}
	if o.fault != nil || body.over && len(events.unread) == 0 {
		closeStream()
		return o
	}

	span.detach() // the caller's context ends with the answer
	if !h.l.tasks.run(func() { h.drainStream(events, span.cut, closeStream) }) {
		closeStream()
	}

	return o
}

// A responseBody records whether it was read to its end.
type responseBody struct {
	io.ReadCloser
	over bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.over = b.over || err != nil
	return n, err
}

// awaitAnswer reads up to the answer. cut reports that the stream ended before the answer, and may
// be resumed.
func (h *httpConn) awaitAnswer(ctx context.Context, events *eventReader, q *query) (o outcome, cut bool) {
	for {
		msg, f, err := h.nextMessage(events)
		switch {
		case isTooLong(err):
			return outcome{large: true, fault: h.l.tooLarge()}, false
		case errors.Is(err, io.EOF) && h.l.ctx.Err() == nil && ctx.Err() == nil:
			return failedWith(&fault{code: CodeUnreachable, reason: "its event stream ended without an answer"}), true
		case err != nil:
			return failedWith(h.transportFault(ctx, err)), h.l.ctx.Err() == nil && ctx.Err() == nil
		case f != nil:
			return failedWith(f), false
		case msg.Method == "":
			return outcome{incoming: msg, fault: h.checkAnswer(msg, q)}, false
		}
		if f := h.l.handleMessage(ctx, msg, q); f != nil {
			return failedWith(f), false
		}
	}
}

// resumeStream requests the rest of a stream if its events have ids (MCP 2025-11-25, transports).
// It sends a GET, never the request itself. It returns nil if there is no rest.
func (h *httpConn) resumeStream(ctx context.Context, events *eventReader) *http.Response {
	if h.l.modern || h.session == "" || events.id == "" || h.settled.Load() == nil {
		return nil
	}

	wait := resumeWait
	if events.retry > 0 {
		wait = min(max(events.retry, leastResumeWait), mostResumeWait)
	}

	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil
	}

	header := h.streamHeader()
	header.Set("Last-Event-Id", events.id)
	resp, f := h.exchange(ctx, ctx, http.MethodGet, h.target.origin, header, nil, nil)
	if f != nil {
		return nil
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != "text/event-stream" {
		resp.Body.Close()
		return nil
	}

	return resp
}

// nextMessage reads the next message of a stream.
func (h *httpConn) nextMessage(events *eventReader) (incoming, *fault, error) {
	for {
		name, data, err := events.nextEvent()
		if err != nil {
			return incoming{}, nil, err
		}
		if len(bytes.TrimSpace(data)) > 0 && (name == "" || name == "message") {
			msg, f := h.l.readMessage(data)
			return msg, f, nil
		}
		if f := h.l.countUnasked(); f != nil { // empty events count too
			return incoming{}, f, nil
		}
	}
}

// drainStream reads the events after the answer to the stream's end, so that the connection can be
// used again.
func (h *httpConn) drainStream(events *eventReader, cut, closeStream func()) {
	defer closeStream()
	memory := h.l.u.Memory(h.l.peer.Owner)
	defer memory.Release()
	events.hold = h.l.timedHolder(h.l.ctx, memory, pauseNone)
	defer func() { _ = events.hold(0) }()
	timer := time.AfterFunc(drainTime, cut)
	defer timer.Stop()
	for {
		msg, f, err := h.nextMessage(events)
		if f != nil || err != nil {
			return
		}
		if msg.Method == "" {
			continue // a second answer is ignored
		}
		if h.l.handleMessage(h.l.ctx, msg, nil) != nil {
			return
		}
	}
}

// runStandaloneStream opens the standalone stream and reads it to its end. The next request opens
// it again. If the stream was open, a timer does so too, because a client that only waits for
// notifications makes no request.
func (h *httpConn) runStandaloneStream() {
	begun := time.Now()
	mayReopen := h.readStandaloneStream()
	defer func() { h.l.streamOpen.Store(!mayReopen) }() // set after the last use of reopen
	if !mayReopen || h.reopen == 0 || h.l.ctx.Err() != nil {
		return
	}
	if time.Since(begun) > mostResumeWait {
		h.reopen = resumeWait
	}
	time.AfterFunc(h.reopen, h.l.openStream)
	h.reopen = min(2*h.reopen, mostResumeWait)
}

// readStandaloneStream opens the standalone stream of a revision with sessions and reads it to its
// end. mayReopen reports whether to try again later: a server that answers with anything but a
// stream has none. If the session had a stream before, 404 says that the session is lost.
func (h *httpConn) readStandaloneStream() (mayReopen bool) {
	resp, f := h.exchange(h.l.ctx, h.l.ctx, http.MethodGet, h.target.origin, h.streamHeader(), nil, nil)
	h.l.markStreamAnswered()
	if f != nil {
		return true
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != "text/event-stream" {
		if h.reopen > 0 {
			h.l.checkLostSession(resp.StatusCode)
		}
		return false
	}

	h.reopen = max(h.reopen, resumeWait)
	memory := h.l.u.Memory(h.l.peer.Owner)
	defer memory.Release()
	events := newEventReader(resp.Body, h.l.maxFrame, h.l.timedHolder(h.l.ctx, memory, pauseNone))
	defer func() { _ = events.hold(0) }()

	for {
		msg, f, err := h.nextMessage(events)
		switch {
		case isTooLong(err):
			h.l.endWith(h.l.tooLarge())
			return false
		case err != nil:
			return true
		case f != nil:
			return false
		case msg.Method == "":
			h.l.fail(CodeProtocol, "it answered a request on a stream that is not for answers")
			return false
		}
		if h.l.handleMessage(h.l.ctx, msg, nil) != nil {
			return false
		}
	}
}
