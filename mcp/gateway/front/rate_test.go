package front

import (
	"io"
	"net/http"
	"testing"

	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// refusing limits every request of ann's.
func refusing(asked *int) func(session.Identity, *policy.Identity) (int, string) {
	return func(from session.Identity, _ *policy.Identity) (int, string) {
		if *asked++; from.Name != "ann" && from.Name != "operator" {
			return 0, ""
		}
		return 12, "This caller may send 5 requests a minute."
	}
}

const limitedBody = `{"code":-32000,"message":"too many requests: This caller may send 5 requests a minute. Send the next one in 12 s.",` +
	`"data":{"code":"rate_limited","retry_after_s":12}}`

// TestLimit: a request of a caller that sends too many is refused after the caller is authenticated and before anything of the body is read.
func TestLimit(t *testing.T) {
	const ann = "Authorization: Bearer token-ann"
	for _, tt := range []struct {
		name, method, path, from string
		want, asked              int
	}{
		{"post", "POST", "/mcp", ann, 429, 1},
		{"stream", "GET", "/mcp", ann, 429, 1},
		{"channel", "GET", "/sse", ann, 429, 1},
		{"message-to-a-channel", "POST", "/sse/messages?session=x", ann, 429, 1},
		{"status", "GET", "/status/x", ann, 429, 1},
		{"end-of-a-session", "DELETE", "/mcp", ann, 400, 0},
		{"token-refused", "POST", "/mcp", "Authorization: Bearer other", 401, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			g, _ := scripted(t, func(o *setup) { o.Limit = refusing(&asked) })
			r := come(tt.method, tt.path, "", tt.from, "Accept: text/event-stream")
			r.Body, r.ContentLength = unread{t}, 100
			w := serve(g, r)
			if w.Code != tt.want || asked != tt.asked {
				t.Errorf("answered with %d and asked %d times, want %d and %d: %s", w.Code, asked, tt.want, tt.asked, w.Body)
			}
			if tt.want != http.StatusTooManyRequests {
				return
			}
			if after := w.Header().Get("Retry-After"); after != "12" {
				t.Errorf("Retry-After: %q", after)
			}
			if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":null,"error":`+limitedBody+`}`; got != want {
				t.Errorf("the body is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestStdioLimit: over standard input a limited request has an error as its answer. Notifications pass, because they have no answer.
func TestStdioLimit(t *testing.T) {
	asked := 0
	g, s := scripted(t, func(o *setup) { o.Limit = refusing(&asked) })
	c := startChild(t, g)
	c.say(rpc("1", "ping", "{}"))
	c.hear(`{"jsonrpc":"2.0","id":1,"error":` + limitedBody + `}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
	within(t, "the notification", s.received)
	c.say(`{"jsonrpc":`)
	c.hear(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"it is not one JSON value: at byte 11","data":{"code":"message_invalid"}}}`)
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}
