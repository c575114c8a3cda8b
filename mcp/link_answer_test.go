package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var chunkTable = []struct {
	name, text, body string
	ok               bool
}{
	{"one", "5\r\nhello\r\n0\r\n\r\n", "hello", true},
	{"two", "5\r\nhello\r\n0A\r\n 0123456 9\r\n0\r\n\r\n", "hello 0123456 9", true},
	{"none", "0\r\n\r\n", "", true},
	{"data-like-the-end", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n", true},
	{"an-extension", "5;a=b;c\r\nhello\r\n0;x\r\n\r\n", "hello", true},
	{"space-behind-a-length", "5 \r\nhello\r\n0\r\n\r\n", "hello", true},
	{"trailers", "5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n", "hello", true},
	{"no-end", "5\r\nhello\r\n", "hello", false},
	{"half-a-chunk", "5\r\nhel", "hel", false},
	{"half-an-end", "5\r\nhello\r\n0\r\n", "hello", false},
	{"no-line-end-behind-data", "5\r\nhelloX\r\n0\r\n\r\n", "hello", false},
	{"no-length", "\r\nhello\r\n0\r\n\r\n", "", false},
	{"no-digits", "x\r\nhello\r\n0\r\n\r\n", "", false},
	{"a-sign", "+5\r\nhello\r\n0\r\n\r\n", "", false},
	{"a-line-feed-alone", "5\nhello\r\n0\r\n\r\n", "", false},
	{"a-carriage-return-in-a-line", "5;\r\r\nhello\r\n0\r\n\r\n", "", false},
	{"space-in-front-of-an-extension", "5 ;x\r\nhello\r\n0\r\n\r\n", "", false},
	{"a-length-of-too-many-digits", strings.Repeat("0", maxChunkDigits) + "5\r\nhello\r\n0\r\n\r\n", "", false},
	{"a-line-that-is-too-long", "5;" + strings.Repeat("x", laneBuffer) + "\r\nhello\r\n0\r\n\r\n", "", false},
	{"a-byte-a-chunk", strings.Repeat("1\r\nx\r\n", 3000) + "0\r\n\r\n", strings.Repeat("x", 3000), true},
	{"more-around-the-data-than-data", strings.Repeat("1;"+strings.Repeat("x", 100)+"\r\nx\r\n", 400) + "0\r\n\r\n", "", false},
	{"short-trailers-without-an-end", "0\r\n" + strings.Repeat("A: b\r\n", 10_000) + "\r\n", "", false},
	{"trailers-without-an-end", "0\r\n" + strings.Repeat("A: "+strings.Repeat("x", 100)+"\r\n", 10_000) + "\r\n", "", false},
}

func TestBodiesInChunks(t *testing.T) {
	for _, tt := range chunkTable {
		t.Run(tt.name, func(t *testing.T) {
			for how, slowly := range map[string]func(io.Reader) io.Reader{ // in any order
				"at-once": func(r io.Reader) io.Reader { return r }, "byte-by-byte": iotest.OneByteReader, "in-halves": iotest.HalfReader,
			} {
				const behind = "HTTP/1.1"
				src := bufio.NewReaderSize(slowly(strings.NewReader(tt.text+behind)), laneBuffer)
				if !tt.ok {
					src.Reset(slowly(strings.NewReader(tt.text)))
				}
				body, err := io.ReadAll(&chunkedBody{src: src})
				if (err == nil) != tt.ok || tt.ok && string(body) != tt.body || !strings.HasPrefix(string(body), tt.body) {
					t.Errorf("%s: it is %.60q, %v", how, body, err)
				}
				if rest, _ := io.ReadAll(src); tt.ok && string(rest) != behind {
					t.Errorf("%s: %q is left", how, rest)
				}
			}
		})
	}
}

// FuzzChunkedBody: what is read is what net/http reads, and what it refuses is refused.
func FuzzChunkedBody(f *testing.F) {
	for _, tt := range chunkTable {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := io.ReadAll(&chunkedBody{src: bufio.NewReaderSize(strings.NewReader(text), laneBuffer)})
		slow, slowErr := io.ReadAll(&chunkedBody{src: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), laneBuffer)})
		if (err == nil) != (slowErr == nil) || err == nil && !bytes.Equal(got, slow) {
			t.Fatalf("%q is %q, %v, and byte by byte %q, %v", text, got, err, slow, slowErr)
		}
		if err != nil {
			return
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(text)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q is %q, and to net/http %q, %v", text, got, want, err)
		}
	})
}

func TestSizedBodies(t *testing.T) {
	for _, tt := range []struct {
		name, text, body string
		size             int64
		err              error
	}{
		{"exactly", "hello", "hello", 5, nil}, {"more-behind", "helloworld", "hello", 5, nil},
		{"one-less", "hell", "hell", 5, io.ErrUnexpectedEOF}, {"nothing", "", "", 1, io.ErrUnexpectedEOF}, {"none", "x", "", 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := io.ReadAll(&sizedBody{src: strings.NewReader(tt.text), left: tt.size})
			if string(got) != tt.body || !errors.Is(err, tt.err) {
				t.Errorf("it is %q, %v", got, err)
			}
		})
	}
}

var headTable = []struct {
	name, text string
	ordinary   bool
}{
	{"chunks", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nDate: x\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
	{"a-length", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello", true},
	{"accepted", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", true},
	{"neither", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\nhello", false},
	{"both", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"another-status", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false},
	{"another-phrase", "HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n", false},
	{"an-older-protocol", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"it-closes", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false},
	{"a-host", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nHost: x\r\n\r\n", false},
	{"half", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", false},
	{"one-that-goes-on", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false},
}

func TestHeadsOfResponsesAreReadAsNetHTTPReadsThem(t *testing.T) {
	for _, tt := range headTable {
		t.Run(tt.name, func(t *testing.T) {
			if got := headAlike(t, tt.text); got != tt.ordinary {
				t.Errorf("ordinary() = %t", got)
			}
		})
	}
}

// headAlike reads the head of a response and the body, and holds them to what net/http reads.
func headAlike(t *testing.T, text string) bool {
	t.Helper()
	src := bufio.NewReaderSize(strings.NewReader(text), laneBuffer)
	if _, err := src.Peek(1); err != nil {
		return false
	}
	l := &lane{src: src, room: math.MaxInt64}
	before := src.Buffered()
	got := l.ordinary()
	if got == nil {
		if src.Buffered() != before {
			t.Errorf("%d bytes of %q are lost", before-src.Buffered(), text)
		}
		return false
	}
	want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("net/http does not read %q: %v", text, err)
	}
	said := func(r *http.Response) []any {
		return []any{r.Status, r.StatusCode, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Header, r.ContentLength, r.TransferEncoding, r.Close}
	}
	if diff := cmp.Diff(said(want), said(got)); diff != "" {
		t.Errorf("%q is not what net/http reads (-want +got):\n%s", text, diff)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return true
	}
	whole, err := io.ReadAll(want.Body)
	if err != nil && len(want.TransferEncoding) == 0 || !bytes.Equal(body, whole) { // it looks into trailers
		t.Errorf("the body of %q is %q, and to net/http %q, %v", text, body, whole, err)
	}
	return true
}

func FuzzHeadOfAResponse(f *testing.F) {
	for _, tt := range headTable {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) { headAlike(t, text) })
}
