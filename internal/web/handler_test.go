package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
)

// post sends a request and returns its response.
func (c *client) post(path, fields, body string) (*http.Response, error) {
	c.t.Helper()
	check.NoError(c.t, c.c.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(c.c, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+fields+"\r\n"+body); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	return resp, err
}

// TestBodiesThatAreNotRead: a request is answered at once, whether its body comes or not.
func TestBodiesThatAreNotRead(t *testing.T) {
	for _, tt := range []struct {
		name, path, fields, body string
		stays                    bool // the connection takes another request
	}{
		{"never-comes", "/", "Content-Length: 10\r\n", "", false},
		{"half-comes", "/", "Content-Length: 10\r\n", "12345", false},
		{"half-a-chunk-comes", "/", "Transfer-Encoding: chunked\r\n", "a\r\n12345", false},
		{"comes-with-the-header", "/", "Content-Length: 10\r\n", "1234567890", true},
		{"is-read", "/read", "Content-Length: 10\r\n", "1234567890", true},
		{"is-empty", "/", "Content-Length: 0\r\n", "", true},
		{"is-read-in-chunks", "/read", "Transfer-Encoding: chunked\r\n", "a\r\n1234567890\r\n0\r\n\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, serving(t, 10))
			resp, err := c.post(tt.path, tt.fields, tt.body)
			if err != nil || resp.StatusCode != http.StatusOK || resp.Close == tt.stays {
				t.Fatalf("%+v, %v; want it answered, and the connection to stay: %v", resp, err, tt.stays)
			}
			if !tt.stays {
				return
			}
			<-c.fixture.idle
			if !c.asks("/", "") {
				t.Error("the next request is not answered")
			}
		})
	}
}

// TestAPlaceThatBecomesIdle goes to the connection that waits. Until then the request under way keeps it.
func TestAPlaceThatBecomesIdle(t *testing.T) {
	at := serving(t, 1)
	busy := dial(t, at)
	if _, err := io.WriteString(busy.c, "POST /read HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(busy.in, nil); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("%v, %v", resp, err)
	}
	<-at.accepted
	next := dial(t, at)
	<-at.accepted // now it waits for a place
	if _, err := io.WriteString(next.c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(busy.c, "1"); err != nil { // the request ends, and the connection stays open
		t.Fatal(err)
	}
	for _, c := range []*client{busy, next} {
		check.NoError(t, c.c.SetDeadline(time.Now().Add(patience)))
		if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", resp, err)
		}
	}
}

func TestHeaderAtItsLimit(t *testing.T) {
	const limit = 8 << 10
	for size, want := range map[int]bool{limit: true, limit + 1: false} { // in any order
		c := dial(t, serving(t, 1, func(s *http.Server) { s.MaxHeaderBytes = web.MaxHeaderBytes(limit) }))
		rest := len("GET / HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n")
		if got := c.asks("/", "X: "+strings.Repeat("x", size-rest)+"\r\n"); got != want {
			t.Errorf("a header of %d bytes: answered %t, want %t", size, got, want)
		}
	}
}
