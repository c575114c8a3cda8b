package upstream

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// An httpRequest is one request of a link.
type httpRequest struct {
	method string
	target *url.URL
	header http.Header // may be shared: it is never changed
	frame  []byte      // the body; nil: there is none
	permit *permit     // of a tools/call
}

// An exchanger makes HTTP exchanges with one server, and keeps connections for the next.
type exchanger interface {
	// trip makes one exchange. A request with a body is sent at most once, whatever becomes of it, and redirects are not followed. The
	// body of the response must be closed. The end of ctx ends the exchange, also while its body is read.
	trip(ctx context.Context, r *httpRequest) (*http.Response, error)
	// close closes the connections that are idle.
	close()
}

func (t *transport) trip(ctx context.Context, r *httpRequest) (*http.Response, error) {
	req := &http.Request{
		Method: r.method, URL: r.target, Host: r.target.Host, Header: r.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.frame != nil { // without GetBody net/http cannot send it a second time
		req.Body, req.ContentLength = newBody(r.frame, r.permit), int64(len(r.frame))
	}
	return t.RoundTrip(req.WithContext(ctx))
}

func (t *transport) close() { t.CloseIdleConnections() }

// A frameBody is a message that is being sent.
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
