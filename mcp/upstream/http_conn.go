package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"pgfsm/internal/oauth"
)

const (
	// idleConns bounds the idle connections to one server, for all links together.
	idleConns = 256
	// maxPreallocated bounds the memory that is allocated at once for a body of announced length.
	maxPreallocated = 2 << 20
)

// An httpConn speaks streamable HTTP: each message is a POST, and the response carries the answer.
type httpConn struct {
	l         *Link
	transport http.RoundTripper
	target    *httpTarget

	base    http.Header                 // sent with every request
	settled atomic.Pointer[http.Header] // sent with every request after the handshake
	// The server's session id; empty: no session, or the handshake is not over.
	session string
	// Wait before a broken standalone stream is opened again; 0: there was none.
	reopen time.Duration
}

func newHTTPConn(l *Link) *httpConn {
	h := &httpConn{l: l, target: &l.up.target, transport: l.up.transport, base: make(http.Header)}
	for _, header := range l.up.server.Headers {
		h.base.Set(header.Name, header.Value)
	}
	if a := l.peer.Account; a != nil && a.Token == nil {
		h.base.Set(a.Header.Name, a.Header.Value)
	}
	h.base.Set("Accept", "application/json, text/event-stream")
	h.base.Set("Content-Type", "application/json")
	h.base.Set("User-Agent", l.u.info.Name+"/"+l.u.info.Version)
	return h
}

// buildHeader builds the header that every request after the handshake has: it names the revision
// and the session.
func (h *httpConn) buildHeader() {
	header := h.base.Clone()
	header.Set(protocolHeader, h.l.serverInfo.Protocol)
	if h.session != "" {
		header.Set(sessionHeader, h.session)
	}
	h.settled.Store(&header)
}

// requestHeader returns the header of a request. It may be the shared header, which must not be
// changed.
func (h *httpConn) requestHeader(q *query) http.Header {
	shared := h.base
	if settled := h.settled.Load(); settled != nil {
		shared = *settled
	}
	if q == nil || !h.l.modern && q.method != methodDiscover && len(q.header) == 0 {
		return shared
	}
	header := shared.Clone()
	if q.method == methodDiscover {
		header.Set(protocolHeader, statelessProtocol)
	}
	if h.l.modern || q.method == methodDiscover {
		header.Set(methodHeader, q.method)
		if q.name != "" {
			header.Set(nameHeader, q.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.header)) { // sorted: names may differ in case alone
		header.Set(name, q.header[name])
	}
	return header
}

// streamHeader returns the header of a GET for an event stream.
func (h *httpConn) streamHeader() http.Header {
	header := h.requestHeader(nil).Clone()
	header.Set("Accept", "text/event-stream")
	header.Del("Content-Type")
	return header
}

// newRequestContext returns the context of an HTTP request, which ends with ctx or with the link.
func (h *httpConn) newRequestContext(ctx context.Context) *requestContext {
	b := new(requestContext)
	b.ctx, b.cut = context.WithCancel(h.l.ctx)
	b.detach = context.AfterFunc(ctx, b.cut)
	return b
}

// A requestContext is the context of an HTTP request.
type requestContext struct {
	ctx    context.Context
	cut    context.CancelFunc // cancels the context
	detach func() bool        // lets the context outlive the caller's, until the link ends
}

func (b *requestContext) release() {
	b.detach()
	b.cut()
}

// exchange sends one HTTP request, with an access token if the server needs one. frame is nil or a
// message, which is authorized right before it is sent. After a 401 the request is sent once more
// with another token, unless it is a tools/call. If the request fails, the caller's context
// explains the error.
func (h *httpConn) exchange(caller, ctx context.Context, method string, target *url.URL, header http.Header,
	frame []byte, p *permit) (
	*http.Response, *fault) {
	for first := true; ; first = false {
		// If the caller or the link gives up while a token is requested, that is the reason, not
		// the token.
		token, f := h.l.currentToken(ctx)
		switch {
		case f != nil && ctx.Err() != nil:
			return nil, h.transportFault(caller, ctx.Err())
		case f == nil && frame != nil:
			f = h.l.authorizeSend(frame, p)
		}
		if f != nil {
			return nil, f
		}
		resp, err := h.transport.RoundTrip(newRequest(ctx, method, target, addAuthorization(header, token), frame, p))
		if err != nil {
			return nil, h.transportFault(caller, err)
		}
		again := h.l.noteStatus(token, resp, frame != nil || h.l.up.server.Type == TypeSSE)
		if !again || p != nil || !first {
			return resp, nil
		}
		discardBody(resp)
	}
}

// discardBody reads a body to its end, up to a limit, so that the connection can be used again.
func discardBody(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxHTTPError)
	resp.Body.Close()
}

// roundTrip posts a request and reads the response.
func (h *httpConn) roundTrip(ctx context.Context, q *query) outcome {
	span := h.newRequestContext(ctx)
	resp, f := h.exchange(ctx, span.ctx, http.MethodPost, h.target.origin, h.requestHeader(q), q.frame, q.permit)
	if f != nil {
		span.release()
		return failedWith(f)
	}

	// The server names the session in its answer to initialize, and never again.
	if q.method == methodInitialize {
		h.session = resp.Header.Get(sessionHeader)
	}

	content := resp.Header.Get("Content-Type")
	switch media := mediaType(content); {
	// Only the stream is missing, so the link lives on.
	case isRedirect(resp.StatusCode) && q.method == methodListen:
		f = &fault{code: CodeRedirect, reason: httpReason(resp.StatusCode)}
	case isRedirect(resp.StatusCode):
		f = h.l.redirectFault(resp)
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		defer span.release()
		defer resp.Body.Close()
		return h.readRefusal(resp, q)
	case media == "text/event-stream":
		return h.readStream(ctx, span, resp, q)
	case media == "application/json":
		defer span.release()
		defer resp.Body.Close()
		return h.readWhole(ctx, span.ctx, resp, q)
	case resp.StatusCode != http.StatusOK:
		f = &fault{code: CodeProtocol,
			reason: fmt.Sprintf("it answered with HTTP status %d and no answer", resp.StatusCode)}
	default:
		f = &fault{code: CodeUnreachable, reason: presentableText(fmt.Sprintf(
			"it answered with the content type %q, neither JSON nor an event stream", content), h.l.secrets)}
	}

	resp.Body.Close()
	span.release()

	return outcome{fault: f, status: resp.StatusCode}
}

// mediaType returns the media type in a Content-Type, without parameters; none that is known if it
// cannot be read.
func mediaType(content string) string {
	media, _, _ := mime.ParseMediaType(content)
	return media
}

// readRefusal returns the outcome of a response with an error status: a lost session, or the
// JSON-RPC error in the body if it answers this request, or else the status.
func (h *httpConn) readRefusal(resp *http.Response, q *query) outcome {
	if f := h.l.checkLostSession(resp.StatusCode); f != nil {
		return failedWith(f)
	}
	if h.l.refusesAccount(resp) { // whatever the body says
		return failedWith(h.statusFault(resp))
	}
	if msg, err := readErrorBody(resp); err == nil && msg.failed != nil && msg.id == q.id {
		return outcome{incoming: msg, status: resp.StatusCode}
	}
	return failedWith(h.statusFault(resp))
}

func readErrorBody(resp *http.Response) (incoming, error) {
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxHTTPError))
	if err != nil {
		return incoming{}, err
	}
	return readIncoming(content)
}

func (h *httpConn) statusFault(resp *http.Response) *fault {
	status := resp.StatusCode
	if h.l.refusesAccount(resp) {
		reason := httpReason(status) + " to the credentials of the person's connection"
		if scope := oauth.Challenge(resp.Header, "scope"); scope != "" && status == http.StatusForbidden {
			reason += ", and asks for the scopes " + strconv.Quote(scope)
		}
		return &fault{code: CodeCredentialsRefused, status: status, reason: presentableText(reason, h.l.secrets)}
	}
	return &fault{code: CodeUnreachable, reason: h.l.up.tokens.statusReason(status), status: status}
}

// readWhole reads a body that is one answer.
func (h *httpConn) readWhole(caller, ctx context.Context, resp *http.Response, q *query) outcome {
	doc, err := h.readBody(resp, q.answerHolder(ctx))
	switch {
	case isTooLong(err):
		return outcome{large: true, fault: h.l.tooLarge()}
	case err != nil:
		return failedWith(h.transportFault(caller, err))
	}
	msg, f := h.l.readMessage(doc)
	if f == nil {
		f = h.checkAnswer(msg, q)
	}
	return outcome{incoming: msg, fault: f}
}

// readBody reads a body up to the size limit of a message.
func (h *httpConn) readBody(resp *http.Response, hold holder) ([]byte, error) {
	n := resp.ContentLength
	if n > int64(h.l.maxFrame) {
		return nil, bufio.ErrTooLong
	}
	if err := hold(int(max(n, 0))); err != nil {
		return nil, err
	}
	// A moderate length is allocated at once. A larger one may be a lie.
	if n > 0 && n <= maxPreallocated {
		doc := make([]byte, n)
		_, err := io.ReadFull(resp.Body, doc)
		return doc, err
	}
	doc, err := io.ReadAll(io.LimitReader(&heldReader{Reader: resp.Body, hold: hold}, int64(h.l.maxFrame)+1))
	if err != nil {
		return nil, err
	}
	if len(doc) > h.l.maxFrame {
		return nil, bufio.ErrTooLong
	}
	return doc, nil
}

// checkAnswer checks that a message is the answer to a request.
func (h *httpConn) checkAnswer(msg incoming, q *query) *fault {
	switch {
	case msg.Method != "":
		return h.l.fail(CodeProtocol, "it sent a request in place of the answer")
	case msg.id != q.id:
		return h.l.fail(CodeProtocol, "it answered request %d in place of %d", msg.id, q.id)
	}
	return nil
}

// sendMessage sends a message that has no answer: the server only accepts it.
func (h *httpConn) sendMessage(ctx context.Context, frame []byte) *fault {
	span := h.newRequestContext(ctx)
	defer span.release()
	var named *query
	if method, _ := sentMethod(frame); h.l.modern && method != "" {
		named = &query{method: method}
	}
	resp, f := h.exchange(ctx, span.ctx, http.MethodPost, h.target.origin, h.requestHeader(named), frame, nil)
	if f != nil {
		return f
	}
	return h.checkAccepted(resp)
}

// checkAccepted reads the response to a message that has no answer to its end, so that the
// connection can be used again. It returns a fault if the server did not accept the message.
func (h *httpConn) checkAccepted(resp *http.Response) *fault {
	discardBody(resp)
	switch {
	case isRedirect(resp.StatusCode):
		return h.l.redirectFault(resp)
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		if f := h.l.checkLostSession(resp.StatusCode); f != nil {
			return f
		}
		return h.statusFault(resp)
	}
	return nil
}

// transportFault returns the fault for an error of net/http.
func (h *httpConn) transportFault(ctx context.Context, err error) *fault {
	if f := h.l.fault(); f != nil {
		return f
	}
	if ctx.Err() != nil {
		return &fault{code: contextCode(ctx), reason: errNoAnswer}
	}
	var f *fault
	if errors.As(err, &f) { // a fault of httpTarget.local
		return h.l.endWith(f)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &fault{code: CodeUnreachable, reason: presentableText(err.Error(), h.l.secrets)}
}

// close ends the session with the server, if it has one.
func (h *httpConn) close(polite bool) {
	h.l.tasks.stopAndWait() // some servers answer the DELETE only after the streams have ended
	if !polite || h.settled.Load() == nil || h.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	resp, f := h.exchange(ctx, ctx, http.MethodDelete, h.target.origin, h.requestHeader(nil), nil, nil)
	if f == nil {
		discardBody(resp)
	}
}

func isTooLong(err error) bool { return errors.Is(err, bufio.ErrTooLong) }
