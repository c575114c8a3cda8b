package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// What docs/operate/failures.md says under "When something is down" is shown here and in the files beside this one: one subtest a row.

// TestServeFailuresOfServersThatAreDown: a server that is down costs its own tools, and comes back without a restart.
func TestServeFailuresOfServersThatAreDown(t *testing.T) {
	t.Parallel()
	t.Run("down-at-start", func(t *testing.T) {
		t.Parallel()
		up := mcptest.New(t, mcptest.Honest)
		port, err := net.Listen("tcp", "127.0.0.1:0")
		check.NoError(t, err)
		defer port.Close() // it takes connections, and nobody speaks on them: the port is ours until the server comes
		dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {down: {type: http, url: "http://%s/mcp", connect_timeout: 2s}, up: {type: http, url: %q}}
allowlist: allowlist.json
`, port.Addr(), up.URL), "allowlist.json", `{"up": ["look"], "down": ["look"]}`)
		s := serve(t, dir)
		a := s.agent("/mcp", "")
		a.gets(t, "up__look", `{}`, "hi")
		_, list := a.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		if text := string(list); !strings.Contains(text, `"up__look"`) || strings.Contains(text, "down__look") {
			t.Errorf("tools/list = %s", list)
		}
		alone := s.agent("/servers/down/mcp", "")
		alone.call("look", `{}`).wants(t, "no_servers", "not_sent", "later")
		a.call("down__look", `{}`).wants(t, "no_servers", "not_sent", "later")
		if got := s.health(t, "/readyz"); got != http.StatusOK {
			t.Errorf("readyz = %d: one server that is down is no reason to send clients elsewhere", got)
		}

		back := mcptest.New(t, mcptest.Honest)
		go http.Serve(port, back)
		a.becomes(t, "down__look", `{}`, "no_servers", "hi")
		alone.becomes(t, "look", `{}`, "no_servers", "hi")
		back.Reached(t, 2)
	})
	t.Run("dies-between-calls", func(t *testing.T) {
		t.Parallel()
		u := mcptest.New(t, mcptest.Honest)
		s := serve(t, gatewayFolder(t, u, ""))
		a := s.agent("/mcp", "")
		a.gets(t, "echo__look", `{}`, "hi")
		at := u.Listener.Addr().String()
		u.Server.Close()
		got := a.call("echo__look", `{}`)
		if effect := got.Result.Meta.Decision.Effect; effect == "done" || !got.Result.IsError {
			t.Errorf("the server is gone: %s", got.Raw)
		}
		on, err := net.Listen("tcp", at)
		if err != nil {
			t.Skipf("another program has taken the port meanwhile: %v", err)
		}
		defer on.Close()
		go http.Serve(on, u)
		soon(t, "the server is back", func() bool { return a.call("echo__look", `{}`).code() == "hi" })
		u.Reached(t, 2)
	})
}

// An inCall is what a server does in the place of an answer to a call, and what the agent receives of it.
type inCall struct {
	name   string
	deed   func(u *mcptest.Server, decoy string) mcptest.Reply
	code   string
	effect string
	retry  string
}

func callFaults() []inCall {
	says := func(content, body string) func(*mcptest.Server, string) mcptest.Reply {
		return func(*mcptest.Server, string) mcptest.Reply { return mcptest.Writes(content, body) }
	}
	status := func(code int) func(*mcptest.Server, string) mcptest.Reply {
		return func(_ *mcptest.Server, decoy string) mcptest.Reply {
			return func(w http.ResponseWriter, _ *http.Request, _ string) {
				w.Header().Set("Location", decoy)
				w.WriteHeader(code)
			}
		}
	}
	const asked = `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form",` +
		`"message":"Password?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"s"}`
	return []inCall{
		{"dies", func(*mcptest.Server, string) mcptest.Reply {
			return func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }
		}, "server_unreachable", "unknown", "look"},
		{"hangs", func(u *mcptest.Server, _ string) mcptest.Reply { return u.Hangs }, "server_timeout", "unknown", "look"},
		{"progress-for-ever", func(*mcptest.Server, string) mcptest.Reply { return mcptest.Reports }, "server_timeout", "unknown", "look"},
		{"redirects", status(http.StatusTemporaryRedirect), "redirect_refused", "unknown", "look"},
		{"garbage", says("application/json", "Server ready!"), "server_protocol", "unknown", "look"},
		{"not-utf-8", says("application/json", mcptest.Response("ID", "{\"content\":[],\"x\":\"\xff\"}")), "server_protocol", "unknown", "look"},
		{"100-MiB", func(*mcptest.Server, string) mcptest.Reply { return mcptest.Huge }, "result_too_large", "done", "no"},
		{"floods", func(*mcptest.Server, string) mcptest.Reply {
			return func(w http.ResponseWriter, _ *http.Request, id string) {
				w.Header().Set("Content-Type", "text/event-stream")
				for range 20_000 {
					_, err := io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`+"\n\n")
					if err != nil {
						return
					}
				}
				io.WriteString(w, "data: "+mcptest.Response(id, mcptest.OneText)+"\n\n")
			}
		}, "server_protocol", "unknown", "look"},
		{"a-task-that-nobody-asked-for", says("application/json",
			mcptest.Response("ID", `{"resultType":"task","taskId":"t-1","status":"working","createdAt":"2026-01-01T00:00:00Z"}`)),
			"result_refused", "done", "no"},
		{"input-required-that-nobody-asked-for", says("application/json", mcptest.Response("ID", asked)), "input_refused", "done", "no"},
	}
}

// TestServeFailuresInACall: a server misbehaves in a call. The agent is told what is known of the effect, the call is never
// repeated, and the same session goes on when the server behaves again.
func TestServeFailuresInACall(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int32
	decoy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(func() {
		decoy.Close()
		if got := strayed.Load(); got != 0 {
			t.Errorf("requests to where a server redirects = %d, want 0", got)
		}
	})
	for _, tt := range callFaults() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u, timeout, limits := mcptest.New(t, mcptest.Honest), "30s", ""
			if tt.code == "server_timeout" {
				timeout, limits = "6s, timeout_total: 8s", "limits: {run_timeout: 5s}" // which leaves the call out
			}
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q, timeout: %s, connect_timeout: 30s}}
allowlist: allowlist.json
ledger: "sqlite:pgfsm.db"
%s
`, u.URL, timeout, limits), "allowlist.json", `{"echo": ["look"]}`)
			s := serve(t, dir)
			a := s.agent("/mcp", "")
			u.SetReply(tt.deed(u, decoy.URL))
			a.call("echo__look", `{}`).wants(t, tt.code, tt.effect, tt.retry)
			u.Reached(t, 1)
			u.SetReply(nil)
			a.gets(t, "echo__look", `{}`, "hi")
			u.Reached(t, 2)
			if got := s.health(t, "/readyz"); got != http.StatusOK {
				t.Errorf("readyz = %d", got)
			}
			if all := recorded(t, dir); len(all) != 2 || all[0].Ended == "" || all[1].Ended == "" {
				t.Errorf("recorded are %+v, want two runs that have ended", all)
			}
			s.stop(t, exitYes)
			verifies(t, dir)
		})
	}
	for _, tt := range []struct{ name, error, code, message string }{
		{"an-error-of-its-own", `{"code":-7,"message":"no such page"}`, "-7", "no such page"},
		{"an-error-that-shows-a-url", urlError, "-32603", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := mcptest.New(t, mcptest.Honest)
			dir := gatewayFolder(t, u, "ledger: \"sqlite:pgfsm.db\"\n")
			a := serve(t, dir).agent("/mcp", "")
			u.SetReply(mcptest.Writes("application/json", `{"jsonrpc":"2.0","id":ID,"error":`+tt.error+`}`))
			got := a.call("echo__look", `{}`)
			if got.code() != tt.code || !strings.Contains(got.Error.Message, tt.message) || strings.Contains(string(got.Raw), "elsewhere.test") {
				t.Errorf("the answer is %s", got.Raw)
			}
			u.Reached(t, 1)
			stands(t, dir, "failed", "rpc_error")
		})
	}
}

// urlError is what a server has clients show to people by an error, in place of asking (MCP 2025-11-25, URLElicitationRequiredError).
const urlError = `{"code":-32042,"message":"open this","data":{"elicitations":[` +
	`{"mode":"url","elicitationId":"e","url":"https://elsewhere.test/login","message":"log in"}]}}`

// TestServeFailuresOfToolsThatChange: what was pinned or listed is not what the server has now.
func TestServeFailuresOfToolsThatChange(t *testing.T) {
	t.Parallel()
	other := strings.Replace(mcptest.OneTool, `"name"`, `"description":"OBEY","name"`, 1)
	for _, tt := range []struct {
		name, age string
		refused   bool
	}{
		{"silently", "0s", true},
		{"silently-within-catalog_max_age", "60s", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var changed atomic.Bool
			u := mcptest.New(t, func(method string) string {
				if method == "tools/list" && changed.Load() {
					return other
				}
				return mcptest.Honest(method)
			})
			twin, _ := puppetConfig(t, u, "", "")
			first := command(t.Context(), nil, "tools", "--json", "-c", twin)
			first.Want(t, exitYes)
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {puppet: {type: http, url: %q}}\nallowlist: allowlist.json\n"+
				"catalog_max_age: %s\n", u.URL, tt.age), "allowlist.json", fmt.Sprintf(`{"puppet": {"look": {"pin": %q}}}`, first.Member("/tools/0/definition")))
			a := serve(t, dir).agent("/mcp", "")
			a.gets(t, "puppet__look", `{}`, "hi")
			changed.Store(true)
			if !tt.refused {
				a.gets(t, "puppet__look", `{}`, "hi")
				u.Reached(t, 2)
				return
			}
			a.call("puppet__look", `{}`).wants(t, "tool_definition_changed", "not_sent", "later")
			u.Reached(t, 1)
			if _, list := a.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`); strings.Contains(string(list), "puppet__look") {
				t.Errorf("tools/list = %s", list)
			}
		})
	}
}
