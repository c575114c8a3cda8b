package upstream

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"pgfsm/internal/secret"
)

// composed is a header of which a server may know and repeat the token alone, and the token has what quoting changes.
const (
	hushed   = `Zq9"x\wV7-Kd3/Jm5`
	composed = "user:" + hushed + "@x"
)

func tokens() *secret.Masker { return secret.New([]string{composed, hushed}) }

// secretPart is a piece of the token that a text shows, in whatever case and with whatever backslashes, "" if there is none.
func secretPart(text string) string {
	bare := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, `\`, "")) }
	text = bare(strings.ReplaceAll(text, secret.Mask, "|"))
	for i := range len(bare(hushed)) - 3 {
		if piece := bare(hushed)[i : i+4]; strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// forEachPadding calls check with paddings that put the cut at limit everywhere into the token and around it.
func forEachPadding(limit int, check func(padding string)) {
	for n := max(0, limit-2*len(hushed)-len(secret.Mask)-60); n < limit+8; n++ {
		check(strings.Repeat("A", n))
	}
}

func TestReasonsHoldNoPartOfASecret(t *testing.T) {
	for _, tt := range []struct{ name, spelled string }{
		{"as-it-is", hushed},
		{"quoted", fmt.Sprintf("%q", hushed)},
		{"quoted-twice", fmt.Sprintf("%q", fmt.Sprintf("%q", hushed))},
		{"escaped", `{"a":"\u005aq9\"x\\wV7-Kd3\/Jm5"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			forEachPadding(maxReason, func(padding string) {
				got := presentableText("it said "+padding+tt.spelled, tokens())
				if secretPart(got) != "" || len(got) > maxReason+len("…") {
					t.Fatalf("presentableText(%d A and the token) = %.500q: it shows %q", len(padding), got, secretPart(got))
				}
			})
		})
	}
}

// TestHTTPEchoesNoSecret: what net/http and the SDK quote of a response, in their own way.
func TestHTTPEchoesNoSecret(t *testing.T) {
	const ok, json = "HTTP/1.1 200 OK\r\n", "Content-Type: application/json\r\n"
	const plain = "Abc-Wv7-Kd3-Jm5" // a host and a media type have no quotes
	sse := func(endpoint string) string {
		return ok + "Content-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: " + endpoint + "\n\n"
	}
	for _, tt := range []struct{ name, kind, answer string }{
		{"no-http", TypeHTTP, hushed + "\r\n\r\n"},
		{"status-line", TypeHTTP, "HTTP/1.1 " + hushed + " x\r\n\r\n"},
		{"transfer-encoding", TypeHTTP, ok + "Transfer-Encoding: " + hushed + "\r\n\r\n"},
		{"content-type", TypeHTTP, ok + "Content-Type: " + hushed + "\r\nContent-Length: 2\r\n\r\n{}"},
		{"body", TypeHTTP, ok + json + "\r\n" + hushed},
		{"member", TypeHTTP, ok + json + "\r\n" + fmt.Sprintf(`{"jsonrpc":"2.0",%[1]q:1,%[1]q:2}`, hushed)},
		{"id", TypeHTTP, ok + json + "\r\n" + fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{}}`, hushed)},
		{"sse-endpoint", TypeSSE, sse("http://" + hushed + "/mcp")},
		{"sse-endpoint-in-lower-case", TypeSSE, sse("http://" + plain)},
		{"content-type-in-lower-case", TypeHTTP, ok + "Content-Type: text/" + plain + "\r\nContent-Length: 2\r\n\r\n{}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := serveRaw(t, func(conn net.Conn, _ int) {
				conn.Read(make([]byte, 64<<10))
				io.WriteString(conn, tt.answer)
			})
			s := Server{Name: "w", Type: tt.kind, URL: "http://" + raw.addr + "/mcp", Headers: []Header{
				{"X-Auth", composed}, {"X-Piece", hushed}, {"X-Plain", plain},
			}}
			l := clientOf(upstreams(t, Limits{}, s)).List(t.Context())[0]
			shown := secretPart(l.Reason) != "" || strings.Contains(strings.ToLower(l.Reason), strings.ToLower(plain))
			if l.Status != StatusDown || shown {
				t.Errorf("List() = %+v, want it down for a reason without the token", l)
			}
		})
	}
}

// TestDecodersCutNoSecret: the errors of decoders quote the beginning of a place or of a value.
func TestDecodersCutNoSecret(t *testing.T) {
	quoted := strings.Trim(fmt.Sprintf("%q", hushed), `"`)
	for _, tt := range []struct{ name, answer string }{
		{"revision", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"%[1]s%[2]s","capabilities":{}}}`},
		{"place-of-a-mistake", `{"jsonrpc":"2.0","id":1,"result":{"%[1]s%[2]s":{"deeper":tru}}}`},
		{"id", `{"jsonrpc":"2.0","id":"%[1]s%[2]s","result":{}}`},
		{"id-of-an-error", `{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"%[1]s%[2]s"}}`},
		{"member-twice", `{"jsonrpc":"2.0","%[1]s%[2]s":1,"%[1]s%[2]s":2}`},
		{"method", `{"jsonrpc":"2.0","method":"%[1]s\ud800%[2]s"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			padding := 0
			srv := serveScript(t, answering("initialize", func(w spoken) []string {
				answer := fmt.Sprintf(tt.answer, strings.Repeat("A", padding), quoted)
				return []string{strings.Replace(answer, `"id":1`, `"id":`+w.id, 1)}
			}), false)
			u := New([]Server{srv.server()}, Limits{}, Info{}, tokens())
			defer u.Close()
			for ; padding < 130; padding++ {
				if l := clientOf(u).List(t.Context())[0]; l.Status == StatusUp || secretPart(l.Reason) != "" {
					t.Fatalf("%d A: %+v shows %q", padding, l, secretPart(l.Reason))
				}
			}
		})
	}
}

// TestLastWordsHoldNoPartOfASecret: of what a child says the last line is shown, and not all is kept.
func TestLastWordsHoldNoPartOfASecret(t *testing.T) {
	const lines = "-----BEGIN-----\nZq9xwV7\nKd3Jm5-Kd3Jm5\n-----END-----"
	m := secret.New([]string{lines, hushed})
	rest := strings.Repeat("a", maxTail-len(hushed))
	for _, tt := range []struct {
		name, words, want string
	}{
		{"last-line-of-a-secret", "it is\n" + lines + "\n", secret.Mask},
		{"line-of-which-the-beginning-is-gone", strings.Repeat(hushed+" ", maxTail), ""},
		{"one-past-the-limit", hushed + rest + "a", ""},
		{"at-the-limit", hushed + rest, secret.Mask + rest},
		{"much-before-it", strings.Repeat(hushed, maxTail) + "\n" + hushed + " is wrong", secret.Mask + " is wrong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tl tail
			for words := tt.words; words != ""; words = words[min(1000, len(words)):] {
				tl.Write([]byte(words[:min(1000, len(words))]))
			}
			if got := tl.lastLine(m); got != tt.want {
				t.Errorf("lastLine() = %.200q, want %.200q", got, tt.want)
			}
		})
	}
}
