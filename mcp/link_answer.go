package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"pgfsm/mcp/wire"
)

// ordinary reads the head of a response if the whole of it is there and it is an ordinary one: 200 or 202, and a body whose end is known.
// It takes only what [http.ReadResponse] takes, too, and reads it alike. Nil: nothing was read.
func (l *lane) ordinary() *http.Response {
	const blank = "\r\n\r\n"
	seen, _ := l.src.Peek(l.src.Buffered()) // it is there
	end := bytes.Index(seen, []byte(blank))
	if end < 0 {
		return nil
	}
	line, lines, _ := strings.Cut(string(seen[:end+len("\r\n")]), "\r\n")
	status, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok {
		return nil
	}
	resp := &http.Response{Status: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	switch status {
	case "200 OK":
		resp.StatusCode = http.StatusOK
	case "202 Accepted":
		resp.StatusCode = http.StatusAccepted
	default:
		return nil
	}
	var f wire.Fields
	if !f.Read(lines) || f.Host != "" || f.Chunked == (f.Length >= 0) {
		return nil
	}
	if _, err := l.src.Discard(end + len(blank)); err != nil {
		return nil
	}
	resp.Header, resp.ContentLength = f.Header, f.Length
	if f.Chunked {
		resp.Body, resp.TransferEncoding = &chunkedBody{src: l.src}, []string{"chunked"}
	} else {
		resp.Body = &sizedBody{src: l.src, left: f.Length}
	}
	return resp
}

// A sizedBody is a body whose length is known.
type sizedBody struct {
	src  io.Reader
	left int64
}

func (b *sizedBody) Read(p []byte) (n int, err error) {
	if b.left > 0 {
		n, err = b.src.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
	}
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *sizedBody) Close() error { return nil }

// lastChunk ends a body in chunks.
const lastChunk = "0\r\n\r\n"

// Bounds of what is between the data of chunks.
const (
	maxChunkDigits  = 15       // of a chunk's length
	usualChunkWaste = 8        // in a line; what is more counts, until there is data for it
	maxChunkWaste   = 16 << 10 // all together
)

var errChunks = errors.New("malformed chunked encoding")

// A chunkedBody is a body that comes in chunks (RFC 9112, section 7.1).
type chunkedBody struct {
	src    *bufio.Reader
	left   int64 // of the chunk
	inside bool  // the line end behind the chunk is to come
	waste  int64 // how much more came around the data than data, about
	err    error
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	for b.left == 0 && b.err == nil {
		b.err = b.next()
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.src.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case err != nil:
		b.err = torn(err)
	case b.left == 0:
		b.err = b.ahead()
	}
	return n, b.err
}

func (b *chunkedBody) Close() error { return nil }

// ahead reads what ends the chunk, and the body, if it has come already.
func (b *chunkedBody) ahead() error {
	const end = "\r\n"
	seen, _ := b.src.Peek(min(b.src.Buffered(), len(end+lastChunk))) // it is there
	switch {
	case string(seen) == end+lastChunk, len(seen) >= len(end) && string(seen[:len(end)]) != end:
		return b.next()
	case len(seen) >= len(end):
		b.inside = false
		_, err := b.src.Discard(len(end))
		return err
	}
	return nil
}

// next reads up to the data of the next chunk. At the end of the body the error is [io.EOF].
func (b *chunkedBody) next() error {
	if b.inside {
		b.inside = false
		if line, err := b.line(); err != nil {
			return err
		} else if line != "" {
			return errChunks
		}
	}
	line, err := b.line()
	if err != nil {
		return err
	}
	digits, _, _ := strings.Cut(strings.TrimRight(line, " \t"), ";") // what is behind it means nothing
	size, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) > maxChunkDigits {
		return errChunks
	}
	if b.waste = max(0, b.waste-2*int64(size)); b.waste > maxChunkWaste {
		return errChunks
	}
	b.left, b.inside = int64(size), size > 0
	if size > 0 {
		return nil
	}
	for line != "" { // trailers say nothing here
		if line, err = b.line(); err != nil {
			return err
		}
		if b.waste += usualChunkWaste; b.waste > maxChunkWaste { // of a trailer all is waste, however short its lines are
			return errChunks
		}
	}
	return io.EOF
}

// line reads one line.
func (b *chunkedBody) line() (string, error) {
	line, err := b.src.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", errChunks
		}
		return "", torn(err)
	}
	b.waste += int64(len(line)) - usualChunkWaste
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || strings.Contains(text, "\r") {
		return "", errChunks
	}
	return text, nil
}

// torn is what the end of a connection is in a body.
func torn(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// between reports whether a chunk has been read to its end and nothing of what comes behind it.
func (b *chunkedBody) between() bool { return b.err == nil && b.left == 0 && !b.inside }
