package front

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"pgfsm/internal/web"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// servePost accepts one message of a client.
func (x *exchange) servePost() *refusal {
	if refused := checkContentType(x.r); refused != nil {
		return refused
	}
	if json, stream := acceptedTypes(x.r); !json || !stream {
		return newRefusal(http.StatusNotAcceptable, refusedAccept,
			"answers are application/json or text/event-stream; Accept must have both")
	}

	q := &session.Request{
		From:     x.from,
		Identity: x.identity,
		Endpoint: x.endpoint,
		HTTP:     x.r.Header,
	}
	if !x.readMessage(&q.Message) {
		return nil
	}
	if refused := x.confirmClient(q); refused != nil {
		x.writeRefusal(refused, q.ID)
		return nil
	}

	if q.Request() {
		x.answerRequest(q)
	} else {
		x.acceptOneWay(q)
	}
	return nil
}

// answerRequest answers a request.
func (x *exchange) answerRequest(q *session.Request) {
	ctx, finish, refused := x.admitRequest(q)
	if refused != nil {
		x.writeRefusal(refused, q.ID)
		return
	}
	defer finish()

	a := &response{exchange: x, request: q}
	q.Out = a
	a.startTimer()
	defer a.stopTimer()
	a.writeAnswer(x.front.dispatcher.Dispatch(ctx, q))
}

// acceptOneWay accepts a notification or a response.
func (x *exchange) acceptOneWay(q *session.Request) {
	if refused := x.applyRevision(q); refused != nil {
		x.writeRefusal(refused, q.ID)
		return
	}
	if q.Session != nil {
		cancelRequest(q, &q.Session.Requests)
	}
	x.front.dispatcher.Dispatch(x.r.Context(), q)
	x.writeStatus(http.StatusAccepted)
}

// checkContentType refuses a body that is not JSON.
func checkContentType(r *http.Request) *refusal {
	if !web.HasJSON(r) {
		return newRefusal(http.StatusUnsupportedMediaType, refusedType,
			"the Content-Type must be application/json, in UTF-8")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return newRefusal(http.StatusUnsupportedMediaType, refusedEncoding, "the gateway takes no compressed messages")
	}
	return nil
}

// parseMediaType is [mime.ParseMediaType], but it does not check a type without parameters: one that
// is invalid is none of those that the caller knows.
func parseMediaType(value string) (kind string, params map[string]string, err error) {
	if !strings.Contains(value, ";") { // nearly all
		return strings.ToLower(strings.TrimSpace(value)), nil, nil
	}
	return mime.ParseMediaType(value)
}

// acceptedTypes reports whether the client accepts JSON and event streams. Without an Accept header
// it accepts both.
func acceptedTypes(r *http.Request) (json, stream bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, params, err := parseMediaType(part)
			if err != nil || params["q"] == "0" {
				continue
			}
			json = json || kind == "*/*" || kind == "application/*" || kind == "application/json"
			stream = stream || kind == "*/*" || kind == "text/*" || kind == "text/event-stream"
		}
	}
	return json, stream
}

// admitRequest applies the rules of the request's revision and registers it as under way, until
// finish is called. The context is the session's, if there is one: a lost connection cancels none
// of its requests.
func (x *exchange) admitRequest(q *session.Request) (ctx context.Context, finish func(), refused *refusal) {
	// Answers to servers are still accepted: a request under way may wait for one.
	if x.front.table.Requests.Stopped() {
		return nil, nil, refusalOf(session.ErrStopping)
	}
	if refused = x.applyRevision(q); refused != nil {
		return nil, nil, refused
	}

	s := q.Session
	if s == nil {
		return x.front.beginRequest(x.r.Context(), q, nil, x.stillAuthenticated)
	}

	s.Touch()
	ctx, end, refused := x.front.beginRequest(s.Context, q, &s.Requests, x.stillAuthenticated)
	return ctx, func() { s.Touch(); end() }, refused
}

// beginRequest registers a request as under way until finish is called. It counts among all
// requests, and among those of its session or connection, if it has one. A subscription, which
// would never end by itself, is cancelled when the gateway stops or valid reports false.
func (f *Front) beginRequest(ctx context.Context, q *session.Request, requests *session.InFlight,
	valid func() bool) (_ context.Context, finish func(), refused *refusal) {
	if err := f.table.Requests.Enter(q.From); err != nil {
		return nil, nil, refusalOf(err)
	}

	ctx, cancel := context.WithCancel(ctx)
	id := session.IDOf(q.ID)
	if requests != nil {
		if err := requests.Add(id, f.table.Limits.RequestsPerSession, cancel); err != nil {
			cancel()
			f.table.Requests.Leave(q.From)
			return nil, nil, refusalOf(err)
		}
	}

	if q.Method == methodListen {
		go f.watchSubscription(ctx, cancel, valid)
	}

	return ctx, func() {
		cancel()
		if requests != nil {
			requests.Remove(id)
		}
		f.table.Requests.Leave(q.From)
	}, nil
}

// watchSubscription cancels a subscription when the gateway stops or valid reports false.
func (f *Front) watchSubscription(ctx context.Context, cancel context.CancelFunc, valid func() bool) {
	defer cancel()
	ticker := time.NewTicker(f.timeouts.keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-f.table.Requests.Stopping():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !valid() {
				return
			}
		}
	}
}

// cancelRequest cancels the request that a notification names.
func cancelRequest(q *session.Request, requests *session.InFlight) {
	if q.Method == methodCancelled {
		requests.Cancel(session.IDOf(wire.Member(q.Params, "requestId")))
	}
}

// readMessage reads the body of a POST. It reports false if it has answered with a refusal.
func (x *exchange) readMessage(m *wire.Message) bool {
	body, refused := x.readBody()
	switch {
	case refused != nil:
	case len(body) == 0:
		refused = invalidMessage(wire.ParseError, "there is no message")
	default:
		*m, refused = parseMessage(body)
	}
	if refused != nil {
		x.writeRefusal(refused, m.ID)
	}
	return refused == nil
}

// parseMessage reads one message. A refused message has its id, if that can be found.
func parseMessage(text []byte) (wire.Message, *refusal) {
	m, err := wire.Read(text)
	var fault *wire.Fault
	if errors.As(err, &fault) {
		return wire.Message{ID: fault.ID}, invalidMessage(fault.Code, fault.Reason)
	}
	return m, nil
}

var errTooLarge = errors.New("larger than allowed")

// readBody reads the body of a POST. A body that may need much memory takes it from the budget
// until the exchange ends.
func (x *exchange) readBody() ([]byte, *refusal) {
	limit := x.front.table.Limits.BodyBytes
	if x.r.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}

	_ = x.ctl.SetReadDeadline(time.Now().Add(x.front.timeouts.body)) // net/http resets it after the body
	body, err := x.readReserved(limit)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, session.ErrBusy):
		x.w.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, refusalOf(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newRefusal(http.StatusRequestTimeout, refusedSlow,
			"the message did not come within "+x.front.timeouts.body.String())
	case err != nil:
		return nil, newRefusal(http.StatusBadRequest, refusedBody, "the message could not be read")
	}

	return body, nil
}

// readReserved reads the body, and reserves the memory of the body and of its values.
func (x *exchange) readReserved(limit int) ([]byte, error) {
	body, err := readAll(x.r.Body, x.r.ContentLength, limit,
		func(size int) error { return x.reserveBody(session.MemoryOf(size)) })
	if err != nil {
		return nil, err
	}
	if values := session.MemoryOfValues(body); x.reserved > 0 || values > session.Small {
		return body, x.reserveBody(values)
	}
	return body, nil
}

func tooLarge(limit int) *refusal {
	return newRefusal(http.StatusRequestEntityTooLarge, refusedLarge,
		"a message has at most "+strconv.Itoa(limit)+" bytes")
}

// readAll reads a body of this size, which is negative if unknown. It reserves memory before it
// reads more than [session.SmallBody] bytes.
func readAll(r io.Reader, size int64, limit int, reserve func(int) error) ([]byte, error) {
	if size >= 0 {
		if size > session.SmallBody {
			if err := reserve(int(size)); err != nil {
				return nil, err
			}
		}
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}

	body, err := io.ReadAll(io.LimitReader(r, session.SmallBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > session.SmallBody {
		if err = reserve(limit); err != nil {
			return nil, err
		}
		more, err := io.ReadAll(io.LimitReader(r, max(0, int64(limit)+1-int64(len(body)))))
		if err != nil {
			return nil, err
		}
		body = append(body, more...)
	}
	if len(body) > limit {
		return nil, errTooLarge
	}

	return body, nil
}

// reserveBody takes memory from the budget.
func (x *exchange) reserveBody(memory int) error {
	if !x.front.table.Memory.Take(x.from, memory) {
		return session.ErrBusy
	}
	x.reserved += memory
	return nil
}

// releaseBody gives the memory of the body back, unless transferBody was called.
func (x *exchange) releaseBody() { x.transferBody()() }

// transferBody makes the caller responsible for the memory of the body, and returns the function
// that gives it back.
func (x *exchange) transferBody() (release func()) {
	size := x.reserved
	x.reserved = 0
	return func() {
		if size > 0 {
			x.front.table.Memory.Return(x.from, size)
		}
	}
}
