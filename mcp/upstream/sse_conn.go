package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// An sseConn speaks the HTTP+SSE transport of MCP 2024-11-05: all messages of the server arrive on
// one stream, and it only accepts POSTs.
type sseConn struct {
	duplex
	http   *httpConn
	target *url.URL // URL for messages; set before ready is closed
	ready  chan struct{}
	cancel context.CancelFunc // ends the stream
}

// openSSE opens the stream and waits for the event that names the URL for messages.
func (l *Link) openSSE(ctx context.Context) *fault {
	c := &sseConn{duplex: newDuplex(l), http: newHTTPConn(l), ready: make(chan struct{})}
	c.send = c.postFrame
	l.conn = c
	stream, cancel := context.WithCancel(l.ctx)
	c.cancel = cancel
	header := c.http.base.Clone()
	header.Set("Accept", "text/event-stream")
	resp, f := c.http.exchange(ctx, stream, http.MethodGet, c.http.target.origin, header, nil, nil)
	if f != nil {
		return l.endWith(f)
	}

	content := resp.Header.Get("Content-Type")
	switch {
	case isRedirect(resp.StatusCode):
		f = l.redirectFault(resp)
	case resp.StatusCode != http.StatusOK:
		f = l.endWith(c.http.statusFault(resp))
	case mediaType(content) != "text/event-stream":
		f = l.fail(CodeUnreachable, "it answered with the content type %q, not an event stream", content)
	}

	if f != nil {
		resp.Body.Close()
		return f
	}

	// The URL for messages arrives on the stream, so the stream is read before the link is open.
	l.tasks.run(func() {
		defer resp.Body.Close()
		c.readEvents(resp.Body)
	})
	select {
	case <-c.ready:
		return nil
	case <-l.ctx.Done():
		return l.fault()
	}
}

// readEvents reads to the end of the stream.
func (c *sseConn) readEvents(body io.Reader) {
	events := newEventReader(body, c.l.maxFrame, c.messageHolder())
	defer c.memory.Release()

	for {
		name, data, err := events.nextEvent()
		if err != nil {
			c.l.endWith(c.streamFault(err))
			return
		}

		var f *fault
		switch empty := len(bytes.TrimSpace(data)) == 0; {
		case name == "endpoint" && !empty && c.target != nil: // a second endpoint changes nothing
		case name == "endpoint" && !empty:
			if c.target, f = c.http.target.parseEndpoint(data, c.l.secrets); f != nil {
				c.l.endWith(f)
			} else {
				close(c.ready)
			}
		case empty, name != "" && name != "message":
			f = c.l.countUnasked()
		default:
			f = c.receiveMessage(data)
		}

		if f != nil {
			return
		}
	}
}

// postFrame sends one message.
func (c *sseConn) postFrame(ctx context.Context, frame []byte, p *permit) *fault {
	if f := c.l.fault(); f != nil {
		return f
	}
	span := c.http.newRequestContext(ctx)
	defer span.release()
	resp, f := c.http.exchange(ctx, span.ctx, http.MethodPost, c.target, c.http.requestHeader(nil), frame, p)
	if f != nil {
		return f
	}
	return c.http.checkAccepted(resp)
}

func (c *sseConn) close(bool) { c.cancel() }

func isRedirect(status int) bool { return status >= 300 && status < 400 }

// redirectFault ends the link with a server that redirects.
func (l *Link) redirectFault(resp *http.Response) *fault {
	return l.fail(CodeRedirect, "it answered with HTTP status %d, a redirect", resp.StatusCode)
}

// streamFault returns the fault for a stream that ended with err.
func (c *sseConn) streamFault(err error) *fault {
	if f := c.l.fault(); f != nil {
		return f
	}
	if isTooLong(err) {
		return c.l.tooLarge()
	}
	return &fault{code: CodeUnreachable, reason: fmt.Sprintf("the connection was lost: %v", err), lost: true}
}
