package front

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/session"
)

func TestStatelessMessagesSayWhatTheyAre(t *testing.T) {
	const (
		version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		can     = `"io.modelcontextprotocol/clientCapabilities":{}`
		both    = version + `,` + can
	)
	usual := func(more ...string) []string {
		return append([]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"}, more...)
	}
	call := func(more ...string) []string { return usual(append([]string{"Mcp-Method: tools/call"}, more...)...) }
	list := func(meta string) string { return rpc("7", "tools/list", `{"_meta":{`+meta+`}}`) }
	named := func(method, params string) string { return rpc("7", method, `{`+params+`,"_meta":{`+both+`}}`) }
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		code    string
	}{
		{"all-there", list(both), usual(), 200, ""},
		{"client-without-name", list(both + `,"io.modelcontextprotocol/clientInfo":{"name":1}`), usual(), 400, "-32602"},
		{"no-meta", rpc("7", "tools/list", `{}`), usual(), 400, "-32602"},
		{"no-version-in-meta", list(can), usual(), 400, "-32602"},
		{"no-capabilities", list(version), usual(), 400, "-32602"},
		{"version-of-nobody", strings.ReplaceAll(list(both), "2026-07-28", "v999.0.0"), usual("Mcp-Protocol-Version: v999.0.0"), 400, "-32022"},
		{"version-with-a-session-in-meta", strings.ReplaceAll(list(both), "2026-07-28", "2025-11-25"),
			usual("Mcp-Protocol-Version: 2025-11-25"), 400, "-32022"},
		{"header-without-version", list(both), usual("Mcp-Protocol-Version: -"), 400, "-32020"},
		{"header-of-another-version", list(both), usual("Mcp-Protocol-Version: 2025-11-25"), 400, "-32020"},
		{"body-of-another-version", strings.ReplaceAll(list(both), "2026-07-28", "v999.0.0"), usual(), 400, "-32020"},
		{"header-without-method", list(both), usual("Mcp-Method: -"), 400, "-32020"},
		{"header-of-another-method", list(both), usual("Mcp-Method: tools/call"), 400, "-32020"},
		{"session-is-not-looked-at", list(both), usual("Mcp-Session-Id: forged"), 200, ""},

		{"tool-named", named("tools/call", `"name":"echo"`), call("Mcp-Name: echo"), 200, ""},
		{"tool-encoded", named("tools/call", `"name":"écho"`), call("Mcp-Name: =?base64?w6ljaG8=?="), 200, ""},
		{"tool-encoded-badly", named("tools/call", `"name":"echo"`), call("Mcp-Name: =?base64?ZWNobw?="), 400, "-32020"},
		{"tool-unnamed-in-header", named("tools/call", `"name":"echo"`), call(), 400, "-32020"},
		{"another-tool-in-header", named("tools/call", `"name":"echo"`), call("Mcp-Name: drop"), 400, "-32020"},
		{"tool-unnamed-in-body", named("tools/call", `"arguments":{}`), call("Mcp-Name: echo"), 400, "-32020"},
		{"another-resource", named("resources/read", `"uri":"a://b"`), usual("Mcp-Method: resources/read", "Mcp-Name: a://c"), 400, "-32020"},
		{"task-named", named("tasks/get", `"taskId":"t"`), usual("Mcp-Method: tasks/get", "Mcp-Name: t"), 200, ""},
		{"method-of-tasks-that-is-no-more-names-nothing", named("tasks/result", `"taskId":"t"`), usual("Mcp-Method: tasks/result"), 200, ""},

		{"method-of-nobody", rpc("7", "unknown", `{`+meta+`}`), usual("Mcp-Method: unknown"), 404, "-32601"},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, usual("Mcp-Method: notifications/x"), 202, ""},
		{"notification-of-another-method", `{"jsonrpc":"2.0","method":"notifications/x"}`, usual(), 400, "-32020"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			w := serve(g, come("POST", "/mcp", c.body, c.headers...))
			_, number := code(w.Body.Bytes())
			if diff := cmp.Diff([]any{c.status, c.code}, []any{w.Code, number}); diff != "" {
				t.Errorf("it was answered otherwise (-want +got):\n%s\n%s", diff, w.Body)
			}
			if w.Header().Get(headerSession) != "" {
				t.Error("a session was opened")
			}
			if c.code != "" && strings.Contains(c.body, `"id":7`) && !strings.Contains(w.Body.String(), `"id":7`) {
				t.Errorf("the id did not come back: %s", w.Body)
			}
		})
	}
}

// What package wire refuses is answered with its code and, if it is known, the id; other ids come back as they were.
func TestMessagesHaveOneReading(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   string
		status int
		code   string
		id     string // that comes back
	}{
		{"method-twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, 400, "-32700", "1"},
		{"text-behind", rpc("1", "ping", "{}") + rpc("2", "tools/call", "{}"), 400, "-32600", "1"},
		{"batch", `[` + rpc("1", "ping", "{}") + `]`, 400, "-32600", "null"},
		{"id-beyond-2-to-the-64", rpc("123456789012345678901234567890", "ping", "{}"), 200, "", "123456789012345678901234567890"},
		{"id-text-with-escapes", rpc(`"\u0061\/b"`, "ping", "{}"), 200, "", `"\u0061\/b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := scripted(t, nil)
			id := begin(t, g, "/mcp", "2025-06-18") // whose answers never become streams early
			reached := false
			s.before = func(*session.Request) { reached = true }
			w := serve(g, come("POST", "/mcp", c.body, "Mcp-Session-Id: "+id))
			_, number := code(w.Body.Bytes())
			answered, _, _ := strings.Cut(strings.TrimPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":`), `,"`)
			if diff := cmp.Diff([]any{c.status, c.code, c.id}, []any{w.Code, number, answered}); diff != "" {
				t.Errorf("it was answered otherwise (-want +got):\n%s\n%s", diff, w.Body)
			}
			if reached != (c.status == 200) {
				t.Errorf("it got as far as the dispatcher: %t", reached)
			}
		})
	}
}
