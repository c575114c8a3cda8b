package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// closedURL is where nobody listens.
func closedURL() string {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.URL + "/mcp"
}

// TestServersOverEveryTransport: SSE, streamable HTTP and stdio at once, beside a server that is down, one that is slow
// and one that lies. Each of these takes only its own tools away, and is named.
func TestServersOverEveryTransport(t *testing.T) {
	t.Parallel()
	fleet := demoFleet(t)
	slow := mcptest.New(t, mcptest.Except("tools/list", ""))
	lying := mcptest.New(t, mcptest.Except("tools/list", `{"tools":"none of your business"}`))
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  sharepoint: {type: sse, url: %q}
  servicenow: {type: http, url: %q}
  policies: {type: stdio, command: toy-stdio, args: [mcp-policy-kb]}
  down: {type: http, url: %q}
  slow: {type: http, url: %q, connect_timeout: 300ms}
  lying: {type: http, url: %q}
  absent: {type: stdio, command: no-such-program}
allowlist: allowlist.json
planner:
  routes:
    - {id: lying, pattern: '^ask the liar$', server: lying, tool: look}
`, fleet.URL("mcp-sharepoint", "sse"), fleet.URL("mcp-servicenow", "mcp"), closedURL(), slow.URL, lying.URL),
		"allowlist.json", `{"sharepoint": ["fetch_sharepoint_doc"], "servicenow": ["get_ticket"],
"policies": ["fetch_policy_entry"], "lying": ["look"], "slow": ["look"], "down": ["look"], "absent": ["look"]}`)
	config := filepath.Join(dir, "pgfsm.yaml")

	for _, tt := range []struct{ server, tool, args, status string }{
		{"sharepoint", "fetch_sharepoint_doc", `{"doc_id":"doc-001"}`, "OK"},
		{"servicenow", "get_ticket", `{"ticket_id":"INC0010001"}`, "OK"},
		{"policies", "fetch_policy_entry", `{"policy_id":"policy-999"}`, "NOT_FOUND"},
	} {
		t.Run("call-"+tt.server, func(t *testing.T) {
			r := command(t.Context(), nil, "call", "--json", "-c", config, tt.server, tt.tool, tt.args)
			r.Want(t, cli.ExitYes, "/type", "tool_result", "/typed/status", tt.status, "/effect", "done")
		})
	}
	t.Run("call-a-server-that-is-down", func(t *testing.T) {
		r := command(t.Context(), nil, "call", "--json", "-c", config, "slow", "look", `{}`)
		r.Want(t, cli.ExitFailed, "/code", "no_servers", "/effect", "not_sent")
	})
	t.Run("ask-a-server-that-lies", func(t *testing.T) {
		r := command(t.Context(), nil, "run", "-c", config, "ask the liar")
		r.Want(t, cli.ExitNo)
		for _, want := range []string{"3 of 7 servers", "down is down (server_unreachable: ",
			"slow is down (server_timeout: ", "lying is down (server_protocol: ", "blocked by schema, server_down: "} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("stdout does not hold %q:\n%s", want, r.Stdout)
			}
		}
	})
	t.Run("tools", func(t *testing.T) {
		r := command(t.Context(), nil, "tools", "-c", config)
		r.Want(t, cli.ExitYes)
		if want := "lying is down: [server_protocol] "; !strings.Contains(r.Stdout, want) {
			t.Errorf("stdout does not hold %q:\n%s", want, r.Stdout)
		}
	})
	t.Run("all-replay", func(t *testing.T) {
		command(t.Context(), nil, "replay", "--json", filepath.Join(dir, "traces")).Want(t, cli.ExitYes, "/ok", "true")
	})
	if got := calls(fleet); got != 2 {
		t.Errorf("calls that reached the servers = %d, want 2", got)
	}
}

// TestDemoServesWhatInitWrites: the starter configuration runs against pgfsm demo.
func TestDemoServesWhatInitWrites(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w, err := os.Pipe()
	check.NoError(t, err)
	defer r.Close()
	ended := make(chan int, 1)
	go func() {
		defer w.Close()
		ended <- run(ctx, []string{"demo", "--listen", "127.0.0.1:0,127.0.0.1:0,127.0.0.1:0"},
			world{stdin: strings.NewReader(""), stdout: w, stderr: os.Stderr, getenv: os.LookupEnv})
	}()
	dir := t.TempDir()
	command(ctx, nil, "init", dir).Want(t, cli.ExitYes)
	config := filepath.Join(dir, "pgfsm.yaml")
	text := clitest.Read(t, config)
	starter := text
	for port := 5101; port <= 5103; port++ {
		var name, sse, mcp string
		if _, err := fmt.Fscanln(r, &name, &sse, &mcp); err != nil {
			t.Fatal(err)
		}
		was := fmt.Sprintf("http://127.0.0.1:%d/sse", port)
		if !strings.Contains(starter, was) || !strings.HasSuffix(mcp, "/mcp") {
			t.Fatalf("the starter has no %s, or the demo no %s", was, mcp)
		}
		starter = strings.Replace(starter, was, sse, 1)
	}
	clitest.Write(t, config, starter)
	command(ctx, nil, "run", "--json", "-c", config, "Summarize policy policy-002").Want(t, cli.ExitYes,
		"/type", "tool_result_with_summary", "/typed/policy/title", "Log Retention Policy")
	command(ctx, nil, "run", "--json", "-c", config, `search for "PII Logging"`).Want(t, cli.ExitYes,
		"/typed/hits/0/policy_id", "policy-004")
	cancel()
	if code := <-ended; code != cli.ExitYes {
		t.Errorf("demo: exit code = %d, want %d", code, cli.ExitYes)
	}
}

// TestSecretsStayOut: a server that sends our own secrets back, in whatever spelling, gets none of them onto the screen
// or into a record.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	const token = `tok"en/äöü-hush` // digits alone would be found in digests now and then
	echo := `{"content":[{"type":"text","text":"tok\"en\/\u00e4öü-hush and \u0074ok\u0022en/äöü-hush"}],"isError":false}`
	server := mcptest.New(t, mcptest.Except("tools/call", echo))
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q, headers: {Authorization: "Bearer ${file:token}"}}}
allowlist: allowlist.json
`, server.URL), "allowlist.json", `{"echo": ["look"]}`, "token", token)
	r := command(t.Context(), nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "echo", "look", "{}")
	r.Want(t, cli.ExitYes, "/raw/content/0/text", secret.Mask+" and "+secret.Mask)
	trace := clitest.Read(t, r.Member("/trace"))
	for _, part := range []string{"hush", "äöü"} {
		if strings.Contains(trace, part) || strings.Contains(r.Stdout, part) {
			t.Errorf("a part of the secret, %q, is shown or recorded", part)
		}
	}
	command(t.Context(), nil, "replay", r.Member("/trace")).Want(t, cli.ExitYes)
}

// TestToolsSaysWhyNot: what a server says of its tools is shown fit to be shown, and what takes a tool away is named.
func TestToolsSaysWhyNot(t *testing.T) {
	t.Parallel()
	server := mcptest.New(t, mcptest.Except("tools/list", `{"tools":[
		{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
		{"name":"far","inputSchema":{"type":"object","$ref":"http://127.0.0.1:1/schema.json"}},
		{"name":"round","inputSchema":{"type":"object","$ref":"#"}},
		{"name":"write","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}},
		{"name":"tw\u001b[31m\u202eice","inputSchema":{"type":"object"}},
		{"name":"ahead","inputSchema":{"type":"object","properties":{"x":{"pattern":"^(?!y)"}}}},
		{"name":"odd","description":null,"inputSchema":{"type":"object"}},
		{"name":"any","inputSchema":{"type":"object","properties":{"x":true}}},
		{"name":"long`+strings.Repeat("g", 60)+`","inputSchema":{"type":"object"}},
		{"name":"same","inputSchema":{"type":"object"}},{"name":"same","inputSchema":{"type":"object"}}]}`))
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q}}
allowlist: allowlist.json
`, server.URL), "allowlist.json", `{"puppet": ["look", "far", "round", "write", "same", "lock", "odd"]}`)
	config := filepath.Join(dir, "pgfsm.yaml")
	r := command(t.Context(), nil, "tools", "-c", config)
	r.Want(t, cli.ExitYes)
	if strings.ContainsAny(r.Stdout, "\x1b\u202e") {
		t.Errorf("a name reached the terminal: %q", r.Stdout)
	}
	for _, want := range []string{
		"\n  ✓ look ", "\n  ✗ far  ", "\n  ✗ round ", "\n  ✓ write ", "! on the allowlist, but not annotated as read-only",
		"\n  ✗ lock  ", "[tool_unknown] on the allowlist, but the server does not list it",
		"[schema_refused] ", "[tool_ambiguous] ", `\u001b[31m`, "[tool_not_allowed] not on the allowlist",
		"\n  ✗ ahead ", `[schema_refused] inputSchema: schema refused at "/properties/x/pattern"`, "; it is not on the allowlist",
		"\n  ✗ odd ", `[tool_unknown] entry 7 of the list is no tool of MCP: "/description" is null, not string`,
		`! not on /mcp for clients of revisions before 2026-07-28, whose SDK would reject the whole list: "/inputSchema/properties/x" is boolean`,
		"! its name on /mcp has 72 bytes; several model APIs accept at most 64",
	} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("stdout does not hold %q:\n%s", want, r.Stdout)
		}
	}
	for _, tt := range [][2]string{{"far", "schema_refused"}, {"round", "schema_refused"}, {"same", "tool_ambiguous"}} {
		r := command(t.Context(), nil, "call", "--json", "-c", config, "puppet", tt[0], "{}")
		r.Want(t, cli.ExitNo, "/code", tt[1], "/effect", "not_sent")
	}
}
