package mcp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A way makes exchanges with one server over HTTP, and keeps connections for the next.
type way interface {
	// trip makes one exchange. A request with a body is sent at most once, whatever becomes of it, and nothing is followed. The body of the
	// response must be closed; what is read to its end leaves a connection for the next exchange. The end of ctx ends the exchange,
	// also while its body is read.
	trip(ctx context.Context, r *errand) (*http.Response, error)
	// close closes the connections that are kept. Later ones are not kept.
	close()
}

// way is the way to the road's server: lanes where the server is spoken to in clear text, which is mostly on this machine, where what
// a call costs is what its hop costs; else net/http's connections, which know TLS and proxies.
func (r *road) way() way {
	if !lanesWork || r.origin.Scheme != "http" || !plainHost(r.origin) {
		t := r.transport()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConns, idleConns
		return t
	}
	port := r.origin.Port()
	if port == "" {
		port = "80"
	}
	return &lanes{road: r, addr: net.JoinHostPort(r.origin.Hostname(), port), waiting: idleTimeout}
}

// plainHost reports whether a URL's host goes onto the wire as it stands: no zone, and nothing that is to be spelled in ASCII.
func plainHost(u *url.URL) bool {
	return !strings.HasSuffix(u.Host, ":") && !strings.ContainsFunc(u.Host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._:[]", r)
	})
}

// trip makes an exchange over net/http.
func (t *transport) trip(ctx context.Context, r *errand) (*http.Response, error) {
	req := &http.Request{
		Method: r.method, URL: r.target, Host: r.target.Host, Header: r.head.fields(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.frame != nil { // without GetBody net/http cannot send it a second time
		req.Body, req.ContentLength = newBody(r.frame, r.permit), int64(len(r.frame))
	}
	return t.RoundTrip(req.WithContext(ctx))
}

func (t *transport) close() { t.CloseIdleConnections() }

// A frameBody is a message on its way out.
type frameBody struct {
	frame  []byte
	off    int
	permit *permit // of a tools/call
}

func newBody(frame []byte, p *permit) *frameBody { return &frameBody{frame: frame, permit: p} }

func (b *frameBody) Read(p []byte) (int, error) {
	if b.permit != nil {
		b.permit.touched.Store(true) // nothing of it is on the wire before this
	}
	if b.off == len(b.frame) {
		return 0, io.EOF
	}
	n := copy(p, b.frame[b.off:])
	b.off += n
	return n, nil
}

func (b *frameBody) Close() error { return nil }
