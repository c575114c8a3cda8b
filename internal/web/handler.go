package web

import (
	"io"
	"net/http"
	"time"
)

// Handler wraps next for a listener:
//
//   - A request that came in chunks closes its connection: a Content-Length may have stood beside the chunks, and a proxy in
//     front may see another end of the request.
//   - Once the handler answers, nobody waits for the rest of the request's body. net/http would read it first, for as long as
//     the client takes to send it, and the connection would count as busy meanwhile.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		if r.Body != nil && r.Body != http.NoBody {
			b := &body{ReadCloser: r.Body, conn: ConnOf(r.Context())}
			r.Body, w = b, &answer{ResponseWriter: w, body: b}
		}
		next.ServeHTTP(w, r)
	})
}

// A body notes whether it was read to its end. After the end net/http waits for the next request,
// and the read deadline is that request's. The connection of a body that is being read counts for
// its caller: see [Shed].
type body struct {
	io.ReadCloser
	conn  *Conn // nil: the listener is not one of Shed
	begun bool
	over  bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.conn != nil && !b.begun {
		b.conn.of.startReceiving(b.conn)
	}
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	if b.conn != nil && err != nil {
		b.conn.of.endReceiving(b.conn)
	}
	b.over = b.over || err == io.EOF
	return n, err
}

// An answer is the response to a request with a body.
type answer struct {
	http.ResponseWriter
	body  *body
	begun bool
}

func (a *answer) WriteHeader(status int) {
	if !a.begun && !a.body.over {
		// Buffered data is still read.
		_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now())
	}
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// Write writes the body of the response.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] reach the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// headerSlack is the number of bytes of a header that net/http reads beyond MaxHeaderBytes.
const headerSlack = 4 << 10

// MaxHeaderBytes returns the field of an [http.Server] that accepts request headers of at most n
// bytes, with the request line.
func MaxHeaderBytes(n int) int { return n - headerSlack }
