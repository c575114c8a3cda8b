package wire_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

var fieldsTable = []struct {
	name, lines string
	ordinary    bool
}{
	{"of-a-request", "Host: 127.0.0.1:80\r\nUser-Agent: x\r\nContent-Length: 12\r\nAccept: a/b, c/d\r\nMcp-Session-Id: s\r\n", true},
	{"of-a-response", "Cache-Control: no-cache\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n", true},
	{"nothing", "", true},
	{"more-than-is-usual", strings.Repeat("A: b\r\nC: d\r\n", 20), true},
	{"a-name-twice", "Accept: a\r\nX: 1\r\naccept: b\r\n", true},
	{"other-letters", "hOST: [::1]:80\r\ncontent-LENGTH: 0\r\nmcp_session: x\r\n", true},
	{"space-around-a-value", "A: \t b \t\r\nB:c\r\nC:\r\n", true},
	{"an-empty-host", "Host:\r\n", false},
	{"two-hosts", "Host: a\r\nHost: a\r\n", false},
	{"a-host-with-a-user", "Host: a@b\r\n", false},
	{"two-lengths", "Content-Length: 1\r\nContent-Length: 1\r\n", false},
	{"a-length-with-a-sign", "Content-Length: +1\r\n", false},
	{"a-list-of-lengths", "Content-Length: 1, 1\r\n", false},
	{"no-length", "Content-Length:\r\n", false},
	{"a-length-of-too-many-digits", "Content-Length: 00000000001\r\n", false},
	{"length-and-chunks", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", false},
	{"chunks-and-length", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", false},
	{"another-encoding", "Transfer-Encoding: gzip, chunked\r\n", false},
	{"chunks-twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", false},
	{"close", "Connection: close\r\n", false},
	{"a-connections-own-fields", "Connection: keep-alive, Mcp-Session-Id\r\n", false},
	{"expect", "Expect: 100-continue\r\n", false},
	{"trailer", "Trailer: A\r\n", false},
	{"upgrade", "Upgrade: websocket\r\n", false},
	{"a-line-that-goes-on", "A: b\r\n c\r\n", false},
	{"space-behind-a-name", "A : b\r\n", false},
	{"space-in-a-name", "A b: c\r\n", false},
	{"no-name", ": b\r\n", false},
	{"no-colon", "A\r\n", false},
	{"a-line-feed", "A: b\nC: d\r\n", false},
	{"a-carriage-return", "A: b\rC: d\r\n", false},
	{"a-zero-byte", "A: \x00\r\n", false},
	{"not-ascii", "A: \xc3\xa4\r\n", false},
	{"a-name-that-is-not-ascii", "\xc3\xa4: b\r\n", false},
}

func TestFieldsAreReadAsNetHTTPReadsThem(t *testing.T) {
	for _, tt := range fieldsTable {
		t.Run(tt.name, func(t *testing.T) {
			if got := alike(t, tt.lines); got != tt.ordinary {
				t.Errorf("Read() = %t", got)
			}
		})
	}
}

// alike reads fields, and holds them to what net/http reads.
func alike(t *testing.T, lines string) bool {
	t.Helper()
	var f wire.Fields
	if !f.Read(lines) {
		return false
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\n" + lines + "\r\n")))
	if err != nil {
		t.Fatalf("net/http does not read %q: %v", lines, err)
	}
	length := r.ContentLength
	switch _, said := r.Header["Content-Length"]; {
	case f.Chunked: // net/http says that it does not know how long it is
		length, f.Length = -1, max(f.Length, -1)
	case !said: // and that there is no body
		length = -1
	}
	type fields struct {
		Header  http.Header
		Host    string
		Length  int64
		Chunked bool
		Close   bool
	}
	want := fields{r.Header, r.Host, length, len(r.TransferEncoding) > 0, r.Close}
	if diff := cmp.Diff(want, fields{f.Header, f.Host, f.Length, f.Chunked, false}); diff != "" {
		t.Errorf("%q is not what net/http reads (-want +got):\n%s", lines, diff)
	}
	return true
}

func FuzzFields(f *testing.F) {
	for _, tt := range fieldsTable {
		f.Add(tt.lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if strings.HasSuffix(lines, "\r\n") && !strings.Contains(lines, "\r\n\r\n") && !strings.HasPrefix(lines, "\r\n") { // what a head is cut to
			alike(t, lines)
		}
	})
}
