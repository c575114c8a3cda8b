package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgfsm/mcp/wire"
	"pgfsm/web"
)

// A front is the gateway as a handler.
type front Gateway

// An exchange is one HTTP request and its answer.
type exchange struct {
	*Gateway
	w    http.ResponseWriter
	r    *http.Request
	ctl  http.ResponseController
	from Identity
	at   *endpoint
	conn *web.Conn // nil: it is not one of [Gateway.Serve]

	holds int // bytes of room for its body
}

func (h *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Gateway: (*Gateway)(h), w: w, r: r, ctl: *http.NewResponseController(w)}
	defer func() { x.keep()() }()
	if f := x.serve(); f != nil {
		x.refuse(f, nil)
	}
}

// Kinds of paths.
const (
	pathMCP      = "/mcp"
	pathSSE      = "/sse"
	pathMessages = "/sse/messages"
	pathStatus   = "/status/" // and a run's id
)

// status answers how a run of the caller stands.
func (x *exchange) status(run string) *refusal {
	if x.r.Method != http.MethodGet {
		return x.notAllowed(http.MethodGet)
	}
	if x.from.Token == "" { // everybody on this machine has the same name then
		return refuse(http.StatusUnauthorized, refusedToken, "send the token that made the request")
	}
	if err := x.busy.enter(x.from); err != nil {
		return refusalOf(err)
	}
	defer x.busy.leave(x.from)
	switch doc, err := x.options.Status(x.r.Context(), x.from, run); {
	case err != nil:
		return refuse(http.StatusServiceUnavailable, refusedLedger, "the ledger cannot be read now")
	case doc == nil:
		return refuse(http.StatusNotFound, refusedPath, "no run with this id belongs to the token's actor")
	default:
		x.plain(http.StatusOK, doc)
		return nil
	}
}

// serve answers, or says why not.
func (x *exchange) serve() *refusal {
	x.conn = web.ConnOf(x.r.Context())
	if f := x.guard(x.r); f != nil {
		return f
	}
	who, f := x.identify(x.r)
	if f != nil {
		return f
	}
	x.from = who
	if who.Token != "" {
		web.Authenticated(x.r.Context())
	}
	if run, ok := strings.CutPrefix(x.r.URL.EscapedPath(), pathStatus); ok && x.options.Status != nil {
		return x.status(run)
	}
	at, kind := x.where(x.r.URL.EscapedPath()) // in one spelling: who stands before this may decide by it
	if at == nil {
		return refuse(http.StatusNotFound, refusedPath, "there is nothing here; servers are at /mcp and /servers/{name}/mcp")
	}
	x.at = at
	switch {
	case kind == pathMCP && x.r.Method == http.MethodPost:
		return x.post()
	case kind == pathMCP && first(x.r.Header, headerVersion) >= Stateless:
		return x.notAllowed(http.MethodPost)
	case kind == pathMCP && x.r.Method == http.MethodGet:
		return x.get()
	case kind == pathMCP && x.r.Method == http.MethodDelete:
		return x.remove()
	case kind == pathMCP:
		return x.notAllowed("DELETE, GET, POST")
	case kind == pathSSE && x.r.Method == http.MethodGet:
		return x.openChannel()
	case kind == pathSSE:
		return x.notAllowed(http.MethodGet)
	case x.r.Method == http.MethodPost:
		return x.postChannel()
	default:
		return x.notAllowed(http.MethodPost)
	}
}

// where finds the endpoint of a path, and what of it is asked for.
func (g *Gateway) where(path string) (at *endpoint, kind string) {
	at = g.every
	if rest, ok := strings.CutPrefix(path, "/servers/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		at, path = g.named[name], rest[len(name):]
	}
	switch path {
	case pathMCP, pathSSE, pathMessages:
		return at, path
	}
	return nil, ""
}

func (x *exchange) notAllowed(but string) *refusal {
	f := refuse(http.StatusMethodNotAllowed, refusedMethod, "this method is not for this path; those that are: "+but)
	f.allow = but
	return f
}

// refuse answers with a refusal. The id may be nil.
func (x *exchange) refuse(f *refusal, id []byte) {
	h := x.w.Header()
	switch f.status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", f.allow)
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout:
		h.Set("Connection", "close") // the rest of the body is not read
	}
	x.plain(f.status, f.body(id))
}

// Values of headers, made once.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
	noCache    = []string{"no-cache, no-transform"}
	noSniff    = []string{"nosniff"}
)

// plain answers with one JSON text.
func (x *exchange) plain(status int, body []byte) {
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = jsonType, noStore, noSniff
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.allowWrite()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that is gone is told nothing
}

// empty answers with a status alone.
func (x *exchange) empty(status int) {
	x.allowWrite()
	x.w.WriteHeader(status)
}

// allowWrite gives the client its time for what is written next. Where there is no connection there is no deadline.
func (x *exchange) allowWrite() { _ = x.ctl.SetWriteDeadline(time.Now().Add(x.pace.write)) }

// body reads the message of a POST.
func (x *exchange) body() ([]byte, *refusal) {
	limit := x.options.Limits.BodyBytes
	if x.r.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}
	_ = x.ctl.SetReadDeadline(time.Now().Add(x.pace.body)) // net/http takes it back when all was read
	body, err := readAll(x.r.Body, x.r.ContentLength, limit, x.room)
	switch {
	case errors.Is(err, errLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, errBusy):
		x.w.Header().Set("Connection", "close") // the rest is not read
		return nil, refusalOf(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, refusedSlow, "the message did not come within "+x.pace.body.String())
	case err != nil:
		return nil, refuse(http.StatusBadRequest, refusedBody, "the message could not be read")
	}
	return body, nil
}

func tooLarge(limit int) *refusal {
	return refuse(http.StatusRequestEntityTooLarge, refusedLarge, "a message has at most "+strconv.Itoa(limit)+" bytes")
}

var errLarge = errors.New("larger than allowed")

// message reads the body of a POST, strictly. Refused here, nothing more is to be answered.
func (x *exchange) message() (m wire.Message, refused bool) {
	body, f := x.body()
	if f == nil && len(body) == 0 {
		f = &refusal{status: http.StatusBadRequest, code: wire.ParseError, reason: refusedMessage, message: "there is no message"}
	}
	if f == nil {
		var err error
		if m, err = wire.Read(body); err == nil {
			return m, false
		}
		var fault *wire.Fault
		if errors.As(err, &fault) {
			m.ID = fault.ID
			f = &refusal{status: http.StatusBadRequest, code: fault.Code, reason: refusedMessage, message: fault.Reason}
		} else {
			f = refuse(http.StatusBadRequest, refusedMessage, "the message could not be read")
		}
	}
	x.refuse(f, m.ID)
	return m, true
}

// post takes one message of a client.
func (x *exchange) post() *refusal {
	if f := typed(x.r); f != nil {
		return f
	}
	plain, stream := acceptable(x.r)
	if !stream {
		return refuse(http.StatusNotAcceptable, refusedAccept, "answers are application/json or text/event-stream; Accept must have both")
	}
	m, refused := x.message()
	if refused {
		return nil
	}
	if m.Request() && x.busy.closed() { // an answer is still taken: what is under way may wait for it
		x.refuse(refusalOf(errDraining), m.ID)
		return nil
	}
	q := &request{Message: m, gateway: x.Gateway, from: x.from, at: x.at}
	if f := x.era(q); f != nil {
		x.refuse(f, m.ID)
		return nil
	}
	if !m.Request() {
		x.decide(x.r.Context(), q)
		x.empty(http.StatusAccepted)
		return nil
	}
	if err := x.busy.enter(x.from); err != nil {
		x.refuse(refusalOf(err), m.ID)
		return nil
	}
	defer x.busy.leave(x.from)
	ctx := x.r.Context()
	if s := q.session; s != nil {
		id := string(m.ID)
		if err := s.enter(id); err != nil {
			x.refuse(refusalOf(err), m.ID)
			return nil
		}
		defer s.leave(id)
		ctx = s.ctx // a connection that is lost cancels nothing
	}
	a := &answer{exchange: x, request: q, plain: plain}
	q.out = a
	a.watch()
	defer a.end()
	if q.Method == methodListen {
		var cancel context.CancelFunc
		ctx, cancel = x.untilDraining(ctx, nil)
		defer cancel()
	}
	a.finish(x.decide(ctx, q))
	return nil
}

// Methods that the front knows.
const (
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
)

// untilDraining is ctx, but that it also ends when the gateway, or what else is named, is to stop: for what would never end by itself.
func (g *Gateway) untilDraining(ctx context.Context, or <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-g.busy.ending:
			cancel()
		case <-or:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// era says which revision is in force for a message, and holds the message to the rules of it.
func (x *exchange) era(q *request) *refusal {
	h := x.r.Header
	version, id := first(h, headerVersion), first(h, headerSession)
	if version >= Stateless || id == "" {
		c := claimOf(&q.Message)
		if version >= Stateless || c.version != "" {
			q.protocol, q.header = version, h
			return standsAlone(h, &q.Message, &c)
		}
	}
	if f := spoken(version); f != nil {
		return f
	}
	if id == "" {
		if q.Method != methodInitialize {
			f := refuse(http.StatusBadRequest, refusedSessionless, "the header Mcp-Session-Id is missing; initialize, or send the _meta of "+Stateless)
			f.code = wire.InvalidRequest
			return f
		}
		return nil
	}
	s, f := x.session(id, version)
	if f != nil {
		return f
	}
	q.session, q.protocol = s, s.protocol
	if h[headerMethod] != nil || h[headerName] != nil {
		c := claimOf(&q.Message)
		return repeats(h, &q.Message, &c, false)
	}
	return nil
}

// spoken refuses a revision with sessions that is not one.
func spoken(version string) *refusal {
	if version == "" || slices.Contains(statefulRevisions, version) {
		return nil
	}
	return unsupported(version)
}

// session finds the session that a request says it is of.
func (x *exchange) session(id, version string) (*session, *refusal) {
	s := x.sessions.find(id, x.from, x.at)
	if s == nil {
		f := refuse(http.StatusNotFound, refusedNoSession, "this session is not known here, or is over; initialize")
		f.code = codeNoSession
		return nil, f
	}
	if version != "" && version != s.protocol {
		return nil, refuse(http.StatusBadRequest, refusedVersion, "the session is of another revision than the header MCP-Protocol-Version says")
	}
	return s, nil
}

// remove ends a session at its client's wish.
func (x *exchange) remove() *refusal {
	id := x.r.Header.Get(headerSession)
	if id == "" {
		return refuse(http.StatusBadRequest, refusedSessionless, "the header Mcp-Session-Id is missing")
	}
	s, f := x.session(id, x.r.Header.Get(headerVersion))
	if f != nil {
		return f
	}
	s.end()
	x.empty(http.StatusNoContent)
	return nil
}
