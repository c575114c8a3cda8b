package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"pgfsm/loopback"
	"pgfsm/policy/secret"
)

const (
	// maxHTTPHeader bounds the response headers.
	maxHTTPHeader = 64 << 10
	// maxHTTPError bounds the body of a response that is not a success.
	maxHTTPError = 64 << 10
	// idleTimeout: a pooled connection is dropped before most servers drop it.
	idleTimeout = 4 * time.Second
)

// A roundTripper is the HTTP side of the guard: one origin, no redirects, credentials only for that origin, a
// tools/call at most once, and every response bounded and read strictly before the SDK sees a byte of it.
type roundTripper struct {
	road
	session *session
	pooled  *transport
	// fresh opens a connection for each tools/call. On a pooled connection that the server has just closed one cannot
	// tell whether a call was sent; on a new one a call that could not be sent is known not to be.
	fresh *transport
}

func newRoundTripper(s *session) *roundTripper {
	rt := &roundTripper{road: newRoad(s.server, s.fail), session: s}
	rt.pooled = rt.transport()
	rt.fresh = rt.transport()
	rt.fresh.DisableKeepAlives = true
	return rt
}

// A road is the one way to a server over HTTP: to its origin, and with care for the headers.
type road struct {
	origin  *url.URL
	headers bool          // credentials travel on it
	timeout time.Duration // of a TLS handshake
	// refuse makes the error for a connection that must not be used.
	refuse func(code, format string, args ...any) *fault
}

func newRoad(s Server, refuse func(code, format string, args ...any) *fault) road {
	origin, _ := url.Parse(s.URL) // New has parsed it before
	return road{origin: origin, headers: len(s.Headers) > 0, timeout: s.ConnectTimeout, refuse: refuse}
}

// A transport makes exchanges over HTTP, and no others.
type transport struct{ *http.Transport }

// RoundTrip makes one exchange. A server that takes the connection for another protocol has not answered: net/http gives such a
// connection away, and reading from it would end with no context.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, errSwitched
	}
	return resp, err
}

var errSwitched = errors.New(httpReason(http.StatusSwitchingProtocols))

func (r *road) transport() *transport {
	return &transport{&http.Transport{
		Proxy:                  r.proxy,
		DialContext:            r.dial,
		TLSHandshakeTimeout:    r.timeout,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHTTPHeader,
		DisableCompression:     true, // what is counted is what came
		ForceAttemptHTTP2:      false,
	}}
}

func (rt *roundTripper) closeIdle() {
	rt.pooled.CloseIdleConnections()
	rt.fresh.CloseIdleConnections()
}

// proxy uses HTTPS_PROXY and NO_PROXY for https to other machines: the proxy sees ciphertext. Plain http and loopback
// never go through a proxy.
func (r *road) proxy(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" || loopback.Host(req.URL.Hostname()) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// dial connects, and where headers travel in clear text makes sure that "localhost" really was this machine.
func (r *road) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil || r.origin.Scheme != "http" || !r.headers {
		return conn, err
	}
	if err := r.local(conn.RemoteAddr()); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (r *road) local(addr net.Addr) error {
	if loopback.Addr(addr) {
		return nil
	}
	return r.refuse(CodeOrigin, "%s is not this machine; headers would travel in clear text", r.origin.Host)
}

func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, rt.origin) {
		return nil, rt.session.fail(CodeOrigin, "a request to %s was refused: it is outside the configured origin %s",
			origin(req.URL), origin(rt.origin))
	}
	sent, call, err := rt.outgoing(req)
	if err != nil {
		return nil, err
	}
	// The session's end cuts this request off, whatever context the SDK made it with.
	ctx, cancel := context.WithCancel(req.Context())
	unhook := context.AfterFunc(rt.session.ctx, cancel)
	release := func() { unhook(); cancel() }

	transport := rt.pooled
	if call != nil {
		transport = rt.fresh
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { call.touched.Store(true) },
		})
	}
	resp, err := transport.RoundTrip(rt.dressed(req.Clone(ctx), sent, call))
	if err != nil {
		release()
		return nil, err
	}
	rt.session.status.Store(0)
	if err := rt.incoming(req, resp, sent, release); err != nil {
		resp.Body.Close()
		release()
		return nil, err
	}
	return resp, nil
}

// An outgoing request's body and the id of the JSON-RPC call in it, 0 if there is none.
type outgoing struct {
	body []byte
	id   int64
}

// outgoing reads the body that the SDK made and, for a tools/call, passes its permit for the second time. The permit
// is returned for the trace that notes whether a connection was made.
func (rt *roundTripper) outgoing(req *http.Request) (outgoing, *permit, error) {
	var out outgoing
	if req.Body == nil {
		return out, nil, nil
	}
	defer req.Body.Close()
	var err error
	if out.body, err = io.ReadAll(req.Body); err != nil {
		return out, nil, err
	}
	if req.Method != http.MethodPost {
		return out, nil, nil
	}
	method, id, err := sentMessage(out.body)
	if err != nil {
		return out, nil, rt.session.fail(CodePermit, "the HTTP client refused to send what it cannot read: %v", err)
	}
	out.id = id
	if method != methodCall {
		return out, nil, nil
	}
	p := permitOf(req.Context())
	if err := p.send(); err != nil {
		return out, nil, rt.session.fail(CodePermit, "the HTTP client refused to send %s: %v", methodCall, err)
	}
	return out, p, nil
}

// dressed makes out, a copy of the SDK's request, what goes onto the wire. Without GetBody net/http cannot send a body
// a second time, whatever it takes the request for.
func (rt *roundTripper) dressed(out *http.Request, sent outgoing, call *permit) *http.Request {
	out.GetBody = nil
	if sent.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(sent.body))
		out.ContentLength = int64(len(sent.body))
	}
	for _, h := range rt.session.server.Headers {
		out.Header.Set(h.Name, h.Value)
	}
	// Wrapping a connection hides from the SDK's transport that the handshake is over, so it names no version.
	if v := rt.session.protocol.Load(); v != nil && out.Header.Get(protocolHeader) == "" {
		out.Header.Set(protocolHeader, *v)
	}
	// The SDK decodes the arguments to find the name beside them, and leaves the header out if they hold a number that
	// is no float64.
	if call != nil && out.Header.Get(protocolHeader) >= statelessProtocol {
		out.Header.Set(nameHeader, call.tool)
	}
	return out
}

const (
	protocolHeader    = "Mcp-Protocol-Version"
	nameHeader        = "Mcp-Name"
	statelessProtocol = "2026-07-28" // the first revision with a header for the tool's name
)

// incoming judges a response and puts a bounded, strict reader in place of its body.
func (rt *roundTripper) incoming(req *http.Request, resp *http.Response, sent outgoing, release func()) error {
	s := rt.session
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return s.fail(CodeRedirect, "it answered with HTTP status %d, a redirect", resp.StatusCode)
	}
	body := &boundBody{src: resp.Body, release: release}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		content, err := io.ReadAll(io.LimitReader(resp.Body, maxHTTPError))
		if err != nil {
			content = nil
		}
		rt.noteError(req, resp.StatusCode, content, sent)
		body.Reader = bytes.NewReader(content)
	case media == "text/event-stream":
		filter := newEventFilter(resp.Body, s.limits.frame(), func(data []byte) error { return s.inspect(data, sent.id) })
		if s.server.Type == TypeSSE {
			filter.endpoint = rt.checkEndpoint
		}
		filter.tooLarge = s.tooLarge
		body.Reader = filter
	case media == "application/json" && sent.id != 0 && s.server.Type == TypeHTTP:
		content, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.limits.frame())+1))
		if err != nil {
			return err
		}
		if len(content) > s.limits.frame() {
			return s.tooLarge()
		}
		if err := s.inspect(content, sent.id); err != nil {
			return err
		}
		body.Reader = bytes.NewReader(content)
	case sent.id != 0 && s.server.Type == TypeHTTP: // the SDK would refuse it too, and quote it in lower case
		return s.fail(CodeUnreachable, "it answered with the content type %q, neither JSON nor an event stream",
			resp.Header.Get("Content-Type"))
	default: // accepted notifications
		body.Reader = io.LimitReader(resp.Body, maxHTTPError)
	}
	resp.Body = body
	return nil
}

// noteError keeps what a response without success says about the exchange it belongs to.
func (rt *roundTripper) noteError(req *http.Request, status int, content []byte, sent outgoing) {
	rt.session.status.Store(int32(status))
	x := exchangeOf(req.Context())
	if x == nil || sent.id == 0 {
		return
	}
	x.refuse(status)
	if m, err := readMessage(content); err == nil && m.failed != nil && m.id == sent.id {
		x.answer(nil, m.failed)
	}
}

// inspect refuses a message that has more than one reading and, where want is not 0, an answer to another request.
// Every message passes it, before anything else, over every transport; so this is where a change of the tools is heard.
func (s *session) inspect(doc []byte, want int64) error {
	m, err := readMessage(doc)
	if err != nil {
		err = s.retold(doc, err, func(doc []byte) error { _, err := readMessage(doc); return err })
		return s.fail(CodeProtocol, "it sent what is not a JSON-RPC message: %v", err)
	}
	if m.method != "" { // nor may the SDK come across what it would quote in part
		_, err = jsonrpc.DecodeMessage(doc)
	}
	if err != nil {
		err = s.retold(doc, err, func(doc []byte) error { _, err := jsonrpc.DecodeMessage(doc); return err })
		return s.fail(CodeProtocol, "it sent what is not a JSON-RPC message: %v", err)
	}
	if m.method == "" && want != 0 && m.id != want {
		return s.fail(CodeProtocol, "it answered request %d in place of %d", m.id, want)
	}
	if m.method == noteToolsChanged {
		s.changed()
	}
	return nil
}

func (s *session) tooLarge() error {
	return s.fail(codeFrame, "it sent a message of more than %d bytes", s.limits.frame())
}

// checkEndpoint judges the URL that an SSE server wants messages sent to.
func (rt *roundTripper) checkEndpoint(data []byte) error {
	if _, f := rt.endpoint(data, rt.session.secrets); f != nil {
		return f
	}
	return nil
}

// endpoint reads the URL that an SSE server wants messages sent to.
func (r *road) endpoint(data []byte, secrets *secret.Masker) (*url.URL, *fault) {
	target, err := r.origin.Parse(string(data))
	if err != nil {
		return nil, r.refuse(CodeProtocol, "its SSE endpoint is not a URL")
	}
	if sameOrigin(target, r.origin) {
		target.Host = r.origin.Host // as the operator spells it, not as the server does
		return target, nil
	}
	where := origin(target)
	if clean := secrets.String(target.Host); clean != target.Host {
		where = clean // an origin is in lower case, where nobody would find the secret
	}
	return nil, r.refuse(CodeOrigin, "its SSE endpoint is at %s, outside the configured origin %s", where, origin(r.origin))
}

// origin is RFC 6454's triple as text, with the port always there.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return fmt.Sprintf("%s://%s", u.Scheme, net.JoinHostPort(strings.ToLower(u.Hostname()), port))
}

func sameOrigin(a, b *url.URL) bool { return a.User == nil && origin(a) == origin(b) }

// boundBody is a response body that has passed the checks.
type boundBody struct {
	io.Reader
	src     io.Closer
	release func()
}

func (b *boundBody) Close() error {
	b.release()
	return b.src.Close()
}
