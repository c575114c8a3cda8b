package upstream

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
)

// newRequest makes one request. The header may be shared and is never changed. A nil frame means no
// body. Without GetBody, net/http cannot send a body a second time, whatever happens to the
// request.
func newRequest(ctx context.Context, method string, target *url.URL, header http.Header, frame []byte,
	p *permit) *http.Request {
	req := &http.Request{
		Method:     method,
		URL:        target,
		Host:       target.Host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	if frame != nil {
		req.Body, req.ContentLength = &frameBody{frame: bytes.NewReader(frame), permit: p}, int64(len(frame))
	}
	return req.WithContext(ctx)
}

// A frameBody is the body of a request: one message.
type frameBody struct {
	frame  *bytes.Reader
	permit *permit // nil unless the message is a tools/call
}

func (b *frameBody) Read(p []byte) (int, error) {
	if b.permit != nil {
		b.permit.touched.Store(true) // set before the first byte can leave
	}
	return b.frame.Read(p)
}

func (b *frameBody) Close() error { return nil }
