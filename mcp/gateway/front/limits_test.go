package front

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgfsm/mcp/gateway/session"
)

// TestBodiesAreBoundedTogether: what clients have begun to send, and never end, has a limit for all and one for each; small
// messages pass beside it.
func TestBodiesAreBoundedTogether(t *testing.T) {
	large := func(size int) string {
		return rpc("1", "tools/call", `{"name":"x","a":0,"b":0,"pad":"`+strings.Repeat("x", size)+`",`+meta+`}`)
	}
	whole := large(100 << 10)
	values := session.MemoryOfValues([]byte(whole))
	room := session.MemoryOf(len(whole)) + values
	begun := large(100<<10 + values/session.MemoryOf(1)) // takes as much before its values are counted
	for _, tt := range []struct {
		name   string
		limit  int
		second string // who comes second
		body   string
		want   int
	}{
		{"one-past-that-of-one", 4*room - 2, "ann", whole, 429},
		{"at-that-of-one", 4 * room, "ann", whole, 200},
		{"another-at-that-of-all", 2 * room, "bob", whole, 200},
		{"another-one-past-that-of-all", 2*room - 1, "bob", whole, 429},
		{"small", 2 * room, "ann", rpc("2", "tools/call", `{"name":"x",`+meta+`}`), 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := scripted(t, func(o *setup) { o.Limits.MemoryBytes = tt.limit })
			post := func(who string, body io.Reader, size int64) int {
				r := come("POST", "/mcp", "", "Authorization: Bearer token-"+who, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: x")
				r.Body, r.ContentLength = io.NopCloser(body), size
				return serve(g, r).Code
			}
			slow, rest := io.Pipe()
			answered := make(chan int, 1)
			go func() { answered <- post("ann", slow, int64(len(begun))) }()
			if _, err := io.WriteString(rest, begun[:1]); err != nil { // returns when it is read
				t.Fatal(err)
			}
			if got := post(tt.second, strings.NewReader(tt.body), int64(len(tt.body))); got != tt.want {
				t.Errorf("the second was answered with %d, want %d", got, tt.want)
			}
			if _, err := io.WriteString(rest, begun[1:]); err != nil {
				t.Fatal(err)
			}
			if got := within(t, "the first answer", answered); got == 0 {
				t.Errorf("the first was answered with %d", got)
			}
			if g.table.Memory.Size() != 0 {
				t.Errorf("%d bytes are not given back", g.table.Memory.Size())
			}
		})
	}
}

// TestBodiesOfUnknownSize: room for as much as may come is taken once more than a little has.
func TestBodiesOfUnknownSize(t *testing.T) {
	asked := 0
	room := func(n int) error {
		asked += n
		return nil
	}
	full := func(int) error { return session.ErrBusy }
	for _, tt := range []struct {
		name  string
		size  int
		room  func(int) error
		asked int
		err   error
	}{
		{"little", session.SmallBody, full, 0, nil}, {"more", session.SmallBody + 1, room, 4 * session.Small, nil}, {"more-and-no-room", session.SmallBody + 1, full, 0, session.ErrBusy},
		{"at-the-limit", 4 * session.Small, room, 4 * session.Small, nil}, {"one-past-the-limit", 4*session.Small + 1, room, 4 * session.Small, errTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = 0
			body, err := readAll(strings.NewReader(strings.Repeat("x", tt.size)), -1, 4*session.Small, tt.room)
			if !errors.Is(err, tt.err) || err == nil && len(body) != tt.size || asked != tt.asked {
				t.Errorf("%d bytes, %v, %d asked for", len(body), err, asked)
			}
		})
	}
}

// TestPathsHaveOneSpelling: who stands before the gateway may decide by the path.
func TestPathsHaveOneSpelling(t *testing.T) {
	g, _ := scripted(t, nil)
	for _, path := range []string{
		"/%6dcp", "/servers/files%2Fmcp", "/servers/fil%65s/mcp", "/servers/notes/..%2ffiles/mcp", "//mcp", "/mcp/", "/MCP", "/mcp%00", "/servers//mcp",
		"/servers/files/mcp/", "/servers/notes/../files/mcp",
	} {
		if w := serve(g, come("POST", path, rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`))); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
