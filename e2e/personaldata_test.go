package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/policy/redact"
)

// TestRedactedResultsStayOut: what redact rules find in a result or an error of a call is in nothing that a call or a gateway prints,
// answers, shows or records, and the record says which rule removed it. Replay stays whole.
func TestRedactedResultsStayOut(t *testing.T) {
	t.Parallel()
	const needle = "ann.needle@example.com"
	for _, tt := range []struct{ name, answer, want string }{
		{"text", `"result":{"content":[{"type":"text","text":"write to ` + needle + `"}]}`, redact.Mask},
		{"structured-and-text", `"result":{"content":[{"type":"text","text":"{\"to\":\"` + needle + `\"}"}],"structuredContent":{"to":"` + needle + `"}}`, redact.Mask},
		{"error-result", `"result":{"isError":true,"content":[{"type":"text","text":"no ` + needle + `"}]}`, redact.Mask},
		{"name-of-a-member", `"result":{"content":[],"structuredContent":{"` + needle + `":1}}`, "withholds its result"},
		{"json-rpc-error", `"error":{"code":-32000,"message":"no ` + needle + `","data":{"of":"` + needle + `"}}`, "error -32000"},
		{"json-rpc-error-with-a-name", `"error":{"code":-32000,"message":"no","data":{"` + needle + `":1}}`, "error -32000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.New(t, mcptest.Honest)
			server.SetReply(func(w http.ResponseWriter, _ *http.Request, id string) {
				mcptest.SayJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,`+tt.answer+`}`)
			})
			ledgerURL := newLedger(t)
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: allowlist.json
redact: [{id: mail, server: ec*, tool: look, find: [email]}]
ledger: %q
`, server.URL, ledgerURL), "allowlist.json", `{"echo": ["look"]}`)
			r := command(t.Context(), nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "echo", "look", "{}")
			g := serve(t, dir)
			answered := string(g.agent("/servers/echo/mcp", "").call("look", "{}").Raw)
			g.stop(t, exitYes)
			traces := filepath.Join(t.TempDir(), "traces")
			command(t.Context(), nil, "ledger", "trace", "--all", "-o", traces, "-c", g.config)
			replayed := command(t.Context(), nil, "replay", traces)
			if verified := command(t.Context(), nil, "ledger", "verify", "--deep", "-c", g.config); replayed.Code != exitYes || verified.Code != exitYes {
				t.Errorf("replay exits with %d, verify with %d: %s", replayed.Code, verified.Code, replayed.Stderr+verified.Stderr)
			}
			all := map[string]string{
				"call": r.Stdout + r.Stderr, "agent": answered, "log": g.stderr.String(),
				"export": command(t.Context(), nil, "ledger", "export", "-c", g.config).Stdout,
				"tail":   command(t.Context(), nil, "ledger", "tail", "-c", g.config).Stdout,
			}
			for i, path := range clitest.Traces(t, traces) {
				all[fmt.Sprint("trace ", i)] = clitest.Read(t, path)
			}
			if ledgerURL == inFile {
				all["ledger"] = clitest.Read(t, filepath.Join(dir, "pgfsm.db"))
			}
			for by, text := range all { // in any order
				clitest.WantNone(t, by, text, needle)
			}
			for _, by := range []string{"export", "trace 0"} {
				if !strings.Contains(all[by], `"redacted"`) || !strings.Contains(all[by], `"mail"`) {
					t.Errorf("%s does not say what was removed", by)
				}
			}
			if !strings.Contains(all["call"], tt.want) {
				t.Errorf("%q is nowhere: %s", tt.want, all["call"])
			}
		})
	}
}

// TestRedactedMessagesStayOut: what a server sends during a call passes the same rules.
func TestRedactedMessagesStayOut(t *testing.T) {
	t.Parallel()
	const needle = "ann.needle@example.com"
	server := mcptest.New(t, mcptest.Honest)
	server.SetReply(mcptest.Writes("text/event-stream", `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"for `+needle+`"}}

data: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}

`))
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: allowlist.json
redact: [{id: mail, tool: burn, find: [email]}]
`, server.URL), "allowlist.json", `{"echo": ["look", "burn"]}`)
	g := serve(t, dir)
	resp, err := g.agent("/servers/echo/mcp", "").send(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"look","arguments":{}}}`)
	check.NoError(t, err)
	defer resp.Body.Close()
	all, err := messages(resp)
	check.NoError(t, err)
	if text := string(bytes.Join(all, []byte("\n"))); len(all) != 2 || !strings.Contains(text, redact.Mask) || strings.Contains(text, needle) {
		t.Errorf("the client gets %s", text)
	}
	g.stop(t, exitYes)
}
