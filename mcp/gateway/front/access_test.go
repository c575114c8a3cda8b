package front

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

// code is the code in the data of an error, and the error's own.
func code(body []byte) (reason, number string) {
	failed := wire.Member(body, "error")
	reason, _ = wire.Text(wire.Member(wire.Member(failed, "data"), "code"))
	return reason, string(wire.Member(failed, "code"))
}

func TestGuard(t *testing.T) {
	list := rpc("1", "tools/list", `{`+meta+`}`)
	stateless := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"}
	for _, c := range []struct {
		name    string
		method  string
		path    string
		body    string
		headers []string
		status  int
		reason  string
	}{
		{"as-it-should-be", "POST", "/mcp", list, nil, 200, ""},
		{"one-server", "POST", "/servers/files/mcp", list, nil, 200, ""},
		{"host-in-capitals", "POST", "/mcp", list, []string{"Host: GATEWAY.test", "Authorization: Bearer token-ann"}, 200, ""},
		{"host-of-another", "POST", "/mcp", list, []string{"Host: evil.example"}, 403, "host_refused"},
		{"origin-of-ours", "POST", "/mcp", list, []string{"Origin: http://127.0.0.1:8787"}, 200, ""},
		{"origin-of-another", "POST", "/mcp", list, []string{"Origin: http://evil.example"}, 403, "origin_refused"},
		{"from-another-site", "GET", "/mcp", "", []string{"Sec-Fetch-Site: cross-site"}, 403, "origin_refused"},
		{"from-another-site", "GET", "/sse", "", []string{"Sec-Fetch-Site: cross-site"}, 403, "origin_refused"},
		{"host-before-token", "POST", "/mcp", list, []string{"Host: evil.example", "Authorization: Bearer wrong"}, 403, "host_refused"},

		{"origin-twice", "POST", "/mcp", list, []string{"+Origin: http://127.0.0.1:8787", "+Origin: http://127.0.0.1:8787"}, 400, "header_repeated"},
		{"token-twice", "POST", "/mcp", list, []string{"+Authorization: Bearer token-ann", "+Authorization: Bearer token-bob"}, 400, "header_repeated"},
		{"session-twice", "POST", "/mcp", list, []string{"+Mcp-Session-Id: a", "+Mcp-Session-Id: b"}, 400, "header_repeated"},
		{"method-twice", "POST", "/mcp", list, append(stateless, "+Mcp-Method: tools/list"), 400, "header_repeated"},
		{"event-id-twice", "GET", "/mcp", "", []string{"+Last-Event-Id: a", "+Last-Event-Id: a"}, 400, "header_repeated"},

		{"token-right", "POST", "/mcp", list, []string{"Authorization: Bearer token-ann"}, 200, ""},
		{"scheme-in-small", "POST", "/mcp", list, []string{"Authorization: bearer  token-ann"}, 200, ""},
		{"token-wrong", "POST", "/mcp", list, []string{"Authorization: Bearer wrong"}, 401, "token_refused"},
		{"token-empty", "POST", "/mcp", list, []string{"Authorization: Bearer "}, 401, "token_refused"},
		{"two-tokens", "POST", "/mcp", list, []string{"Authorization: Bearer token-ann token-bob"}, 401, "token_refused"},
		{"scheme-of-another", "POST", "/mcp", list, []string{"Authorization: Basic token-ann"}, 401, "token_refused"},
		{"claims-to-be-anonymous", "POST", "/mcp", list, []string{"Authorization: Bearer token-anonymous"}, 401, "token_refused"},
		{"ledger-down", "POST", "/mcp", list, []string{"Authorization: Bearer down"}, 503, "authentication_unavailable"},
		{"no-token-from-afar", "POST", "/mcp", list, []string{"Peer: 192.0.2.1:4000"}, 401, "token_refused"},
		{"no-token-over-ipv6", "POST", "/mcp", list, []string{"Peer: [::1]:4000"}, 200, ""},
		{"no-token-through-a-proxy", "POST", "/mcp", list, []string{"X-Forwarded-For: 192.0.2.1"}, 401, "token_refused"},
		{"no-token-with-http-1.0", "POST", "/mcp", list, []string{"Protocol: HTTP/1.0"}, 401, "token_refused"},
		{"no-token-by-a-public-name", "POST", "/mcp", list, []string{"Host: gateway.test"}, 401, "token_refused"},
		{"unknown-path-without-token", "POST", "/servers/secret/mcp", list, []string{"Peer: 192.0.2.1:4000"}, 401, "token_refused"},

		{"no-such-server", "POST", "/servers/secret/mcp", list, nil, 404, "path_unknown"},
		{"put", "PUT", "/mcp", list, nil, 405, "method_refused"},
		{"post-to-the-stream", "POST", "/sse", list, nil, 405, "method_refused"},
		{"get-of-the-messages", "GET", "/sse/messages", "", nil, 405, "method_refused"},
		{"stateless-get", "GET", "/mcp", "", stateless, 405, "method_refused"},
		{"stateless-delete", "DELETE", "/mcp", "", stateless, 405, "method_refused"},

		{"no-type", "POST", "/mcp", list, []string{"Content-Type: -"}, 415, "content_type_refused"},
		{"charset-of-another", "POST", "/mcp", list, []string{"Content-Type: application/json; charset=utf-16"}, 415, "content_type_refused"},
		{"compressed", "POST", "/mcp", list, []string{"Content-Encoding: gzip"}, 415, "content_encoding_refused"},
		{"accepts-nothing-said", "POST", "/mcp", list, []string{"Accept: -"}, 200, ""},
		{"accepts-with-qualities", "POST", "/mcp", list, []string{"Accept: text/event-stream;q=0.5, application/json;q=0.9"}, 200, ""},
		{"accepts-json-alone", "POST", "/mcp", list, []string{"Accept: application/json"}, 406, "not_acceptable"},
		{"accepts-streams-alone", "POST", "/mcp", list, []string{"Accept: text/event-stream"}, 406, "not_acceptable"},
		{"accepts-streams-with-quality-zero", "POST", "/mcp", list, []string{"Accept: application/json, text/event-stream;q=0"}, 406, "not_acceptable"},
		{"stream-not-accepted", "GET", "/mcp", "", []string{"Accept: application/json"}, 406, "not_acceptable"},
		{"legacy-stream-not-accepted", "GET", "/sse", "", []string{"Accept: application/json"}, 406, "not_acceptable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			headers := c.headers
			if c.status == 200 {
				headers = append(headers, stateless...)
			}
			w := serve(g, come(c.method, c.path, c.body, headers...))
			reason, _ := code(w.Body.Bytes())
			if diff := cmp.Diff([]any{c.status, c.reason}, []any{w.Code, reason}); diff != "" {
				t.Errorf("it was answered otherwise (-want +got):\n%s\n%s", diff, w.Body)
			}
			if w.Code == 401 && w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Error("the header WWW-Authenticate is missing")
			}
			if w.Code == 405 && w.Header().Get("Allow") == "" {
				t.Error("the header Allow is missing")
			}
			if w.Code == 503 && w.Header().Get("Retry-After") == "" {
				t.Error("the header Retry-After is missing")
			}
			if strings.Contains(w.Body.String(), "token-") {
				t.Errorf("the answer repeats a token: %s", w.Body)
			}
		})
	}
}

func TestGuardOfAGatewayWithoutNamesRefusesAll(t *testing.T) {
	g, _ := scripted(t, func(o *setup) { o.Hosts = nil })
	if w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"))); w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	g, _ := scripted(t, func(o *setup) { o.Limits.BodyBytes = 1000 })
	body := func(n int) string {
		front, back := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`,"pad":"`, `"}}`
		return front + strings.Repeat("x", n-len(front)-len(back)) + back
	}
	for _, c := range []struct {
		name   string
		size   int
		said   bool // Content-Length
		status int
	}{
		{"at-the-limit", 1000, true, 200},
		{"one-past", 1001, true, 413},
		{"at-the-limit-in-chunks", 1000, false, 200},
		{"one-past-in-chunks", 1001, false, 413},
		{"far-past-in-chunks", 100_000, false, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := come("POST", "/mcp", body(c.size), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
			if !c.said {
				r.ContentLength = -1
			}
			if w := serve(g, r); w.Code != c.status {
				t.Errorf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
		})
	}
}
