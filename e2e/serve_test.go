package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// gatewayFolder is a folder with the configuration of a gateway in front of a puppet, and more lines of it.
func gatewayFolder(t *testing.T, p *mcptest.Server, more string) string {
	t.Helper()
	return clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {echo: {type: http, url: %q}}\nallowlist: allowlist.json\n%s", p.URL, more),
		"allowlist.json", `{"echo": ["look"]}`)
}

const holdLook = `version: 1
policies:
  - {id: people, match: {tool: look}, effect: pending, reason: "People decide.", expires: 1h}
`

func TestServeAnswersCalls(t *testing.T) {
	t.Parallel()
	p := mcptest.New(t, func(m string) string {
		if m == "tools/call" {
			return `{"content":[{"type":"text","text":"h\u0069"}],"x":{"big":9007199254740993,"f":1.0,"e":1e400}}`
		}
		return mcptest.Except("tools/list", mcptest.TwoTools)(m)
	})
	s := serve(t, gatewayFolder(t, p, "traces: {dir: traces}\n"))
	for _, tt := range []struct {
		name, path, tool, args, want string
	}{
		{"allowed", "/servers/echo/mcp", "look", `{"n":1}`, "hi"},
		{"allowed-under-the-joined-name", "/mcp", "echo__look", `{"n":1}`, "hi"},
		{"not-allowed", "/servers/echo/mcp", "burn", `{}`, "tool_not_allowed"},
		{"not-allowed-under-the-joined-name", "/mcp", "echo__burn", `{}`, "tool_not_allowed"},
		{"arguments-invalid", "/servers/echo/mcp", "look", `{"n":"one"}`, "arguments_invalid"},
		{"argument-unknown", "/servers/echo/mcp", "look", `{"m":1}`, "arguments_invalid"},
		{"unknown", "/servers/echo/mcp", "sing", `{}`, "-32602"},
		{"unknown-joined", "/mcp", "echo__sing", `{}`, "-32602"},
		{"unknown-without-a-server", "/mcp", "look", `{}`, "-32602"},
		{"arguments-are-no-object", "/servers/echo/mcp", "look", `[1]`, "-32602"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.agent(tt.path, "").call(tt.tool, tt.args); got.code() != tt.want {
				t.Errorf("%s %s: %s, want %s\n%s\n%s", tt.tool, tt.args, got.code(), tt.want, got.Raw, s.stderr)
			}
		})
	}
	t.Run("byte-for-byte", func(t *testing.T) {
		a := s.agent("/servers/echo/mcp", "")
		_, body := a.post(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"look","arguments":{"n":1}}}`)
		const want = `{"jsonrpc":"2.0","id":9007199254740993,"result":` +
			`{"content":[{"type":"text","text":"h\u0069"}],"x":{"big":9007199254740993,"f":1.0,"e":1e400}}}`
		if diff := cmp.Diff(want, string(body)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		_, body = a.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		if !strings.Contains(string(body), `{"name":"look","title":"L\u006fok","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"x-1":1.0}`) ||
			strings.Contains(string(body), "burn") {
			t.Errorf("tools/list: %s", body)
		}
	})
	s.stop(t, exitYes)
	folder := t.TempDir()
	if written := clitest.Traces(t, filepath.Join(filepath.Dir(s.config), "traces")); len(written) > 0 {
		t.Errorf("serve wrote the traces %v, want none", written)
	}
	command(t.Context(), nil, "ledger", "trace", "-c", s.config, "--all", "-o", folder).Want(t, exitYes)
	if kept := clitest.Traces(t, folder); len(kept) < 8 {
		t.Errorf("%d traces, want at least 8", len(kept))
	}
	command(t.Context(), nil, "replay", folder).Want(t, exitYes)
}

// makeToken makes a token in the ledger beside a configuration.
func makeToken(t *testing.T, config, role, name string) string {
	t.Helper()
	store, err := stores.Open(ledgerOf(filepath.Dir(config)), stores.ToWrite)
	check.NoError(t, err)
	defer store.Close()
	l, err := ledger.Open(t.Context(), store, ledger.Options{})
	check.NoError(t, err)
	defer l.Close()
	secret, _, err := l.CreateToken(t.Context(), ledger.LocalUser("local:root"), name, role, "")
	check.NoError(t, err)
	return secret
}

// decide approves or denies over the admin address.
func (s *served) decide(t *testing.T, verb, run, token string) {
	t.Helper()
	decide(t, s.admin, verb, run, token)
}

func decide(t *testing.T, admin, verb, run, token string) {
	t.Helper()
	code, shown := status(t, admin, run, token)
	binding, err := clitest.ValueAt([]byte(shown), "/request/binding")
	if code != http.StatusOK || err != nil {
		t.Fatalf("status %s: %d %s", run, code, shown)
	}
	resp, err := send(t.Context(), http.MethodPost, admin+"/"+verb+"/"+run,
		http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}},
		fmt.Sprintf(`{"expected_digest":%s,"reason":"as decided"}`, binding))
	check.NoError(t, err)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", verb, resp.StatusCode, body, err)
	}
}

// until asks again until the answer is another than before.
func (a *agent) until(t *testing.T, tool, args, before string) (got answered) {
	t.Helper()
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := ledger.Poll(within, 20*time.Millisecond, func() (bool, error) {
		got = a.call(tool, args)
		return got.code() != before, nil
	})
	if err != nil {
		t.Fatalf("%v: still %s\n%s", err, got.Raw, a.s.stderr)
	}
	return got
}

func TestServeHoldsCalls(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	other := makeToken(t, o.config, "agent", "other")
	a := o.agent("/mcp", o.ci)
	for _, tt := range []struct{ name, verb, args, want string }{
		{"approved", "approve", `{"n":1}`, "hi"},
		{"denied", "deny", `{"n":2}`, "approval_denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			held := a.call("echo__look", tt.args)
			if held.code() != "approval_required" || held.Result.IsError || held.Result.Meta.Decision.Retry != "same" {
				t.Fatalf("held: %s\n%s", held.Raw, o.stderr)
			}
			run := held.Result.Meta.Decision.RunID
			if again := a.call("echo__look", tt.args); again.Result.Meta.Decision.RunID != run {
				t.Errorf("a repetition did not attach: %s", again.Raw)
			}
			if theirs := o.agent("/mcp", other).call("echo__look", tt.args); theirs.Result.Meta.Decision.RunID == run {
				t.Errorf("another caller attached: %s", theirs.Raw)
			}
			o.decide(t, tt.verb, run, o.bob)
			a.becomes(t, "echo__look", tt.args, "approval_required", tt.want)
			if next := a.call("echo__look", tt.args); next.code() != "approval_required" || next.Result.Meta.Decision.RunID == run {
				t.Errorf("the outcome was delivered, and the next call is no new one: %s", next.Raw)
			}
		})
	}
	verifies(t, o.dir)
}
