package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"pgfsm/internal/secret"
	"pgfsm/internal/web/loopback"
)

const (
	// maxHTTPHeader bounds the response headers.
	maxHTTPHeader = 64 << 10
	// maxHTTPError bounds the body of a response that is not a success.
	maxHTTPError = 64 << 10
	// idleTimeout closes a pooled connection before most servers would.
	idleTimeout = 4 * time.Second
)

// An httpTarget restricts HTTP to the configured origin of a server, and credentials to safe
// connections.
type httpTarget struct {
	origin  *url.URL
	headers bool          // requests carry credentials
	timeout time.Duration // limit of a TLS handshake
}

func newHTTPTarget(s Server) httpTarget {
	origin, _ := url.Parse(s.URL) // package config has parsed it before
	return httpTarget{origin: origin, headers: s.hasCredentials(), timeout: s.ConnectTimeout}
}

// A transport is an [http.Transport] that never hands out a connection for another protocol.
type transport struct{ *http.Transport }

// RoundTrip sends one request and returns the response. It turns status 101 into an error: net/http
// would hand out the connection, and no context could end a read from it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, errSwitched
	}
	return resp, nil
}

var errSwitched = errors.New(httpReason(http.StatusSwitchingProtocols))

func (r *httpTarget) newTransport() *transport {
	return &transport{&http.Transport{
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idleConns,
		Proxy:                  loopback.ProxyFor,
		DialContext:            r.dial,
		TLSHandshakeTimeout:    r.timeout,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHTTPHeader,
		DisableCompression:     true, // the limits count bytes as received
		ForceAttemptHTTP2:      false,
	}}
}

// dial connects. If headers would travel in clear text, it checks that "localhost" was resolved to
// this machine.
func (r *httpTarget) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil || r.origin.Scheme != "http" || !r.headers {
		return conn, err
	}
	if err := r.checkLocal(conn.RemoteAddr()); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (r *httpTarget) checkLocal(addr net.Addr) error {
	if loopback.Addr(addr) {
		return nil
	}
	return &fault{code: CodeOrigin, reason: r.origin.Host + " is not this machine; headers would travel in clear text"}
}

const (
	protocolHeader    = "Mcp-Protocol-Version"
	sessionHeader     = "Mcp-Session-Id"
	methodHeader      = "Mcp-Method"
	nameHeader        = "Mcp-Name"
	statelessProtocol = "2026-07-28" // first revision with a header for the tool's name
)

// parseEndpoint reads the URL that an SSE server names for messages.
func (r *httpTarget) parseEndpoint(data []byte, secrets *secret.Masker) (*url.URL, *fault) {
	target, err := r.origin.Parse(string(data))
	if err != nil {
		return nil, &fault{code: CodeProtocol, reason: "its SSE endpoint is not a URL"}
	}
	if sameOrigin(target, r.origin) {
		target.Host = r.origin.Host // keeps the operator's spelling
		return target, nil
	}
	place := originOf(target)
	if masked := secrets.String(target.Host); masked != target.Host {
		place = masked // the origin is in lower case, in which the masker would not find the secret
	}
	return nil, &fault{code: CodeOrigin,
		reason: fmt.Sprintf("its SSE endpoint is at %s, outside the configured origin %s", place, originOf(r.origin))}
}

// originOf returns the origin of a URL (RFC 6454) as text, always with a port.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return fmt.Sprintf("%s://%s", u.Scheme, net.JoinHostPort(strings.ToLower(u.Hostname()), port))
}

func sameOrigin(a, b *url.URL) bool { return a.User == nil && originOf(a) == originOf(b) }

func httpReason(status int) string {
	return fmt.Sprintf("it answered with HTTP status %d %s", status, http.StatusText(status))
}
