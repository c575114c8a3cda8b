package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/secret"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
)

const masked = secret.Mask

// hushed is a token that headers and keys are put together with, so that it may be known and repeated alone.
const hushed = `Zq9"x\wV7-Kd3/Jm5`

// pieceOf is a piece of it that a text shows, with whatever backslashes, "" if there is none.
func pieceOf(text string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, `\`, "") }
	text = bare(strings.ReplaceAll(text, masked, "|"))
	for i := range len(bare(hushed)) - 3 {
		if piece := bare(hushed)[i : i+4]; strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// babbler is a server that says in *answer to one method what its JSON-RPC response holds, and is honest otherwise.
func babbler(t *testing.T, method string, answer *string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		id, none := cli.At(body, "/id")
		if err != nil || none != nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		name, _ := cli.At(body, "/method")
		said := `"result":` + mcptest.Honest(strings.Trim(string(name), `"`))
		if string(name) == `"`+method+`"` {
			said = *answer
		} else if strings.HasSuffix(said, ":") {
			said = `"error":{"code":-32601,"message":"unknown"}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, said)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// secretsShown runs a command in dir and returns the piece of the token that it shows or records.
func secretsShown(t *testing.T, dir string, args ...string) string {
	t.Helper()
	traces := t.TempDir()
	r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": traces},
		append([]string{args[0], "--json", "-c", filepath.Join(dir, "pgfsm.yaml")}, args[1:]...)...)
	all := r.Stdout + r.Stderr
	for _, path := range cli.Traces(t, traces) {
		all += cli.Read(t, path)
	}
	if !strings.Contains(all, "AAAA") {
		t.Fatalf("the words of the server are nowhere:\n%s", all)
	}
	return pieceOf(all)
}

// TestReasonsHoldNoPartOfASecret: a name or an error that is as long as it is kept, the token at each place of the cut,
// as a part of what the server or the model was given.
func TestReasonsHoldNoPartOfASecret(t *testing.T) {
	t.Parallel()
	quoted := strings.Trim(fmt.Sprintf("%q", hushed), `"`)
	for _, tt := range []struct {
		name, method, answer string
		cut                  int
	}{
		{"server-name", "initialize", `"result":` + strings.Replace(mcptest.Hello, "puppet", "%s%s", 1), 200},
		{"server-version", "initialize", `"result":` + strings.Replace(mcptest.Hello, `"version":"1"`, `"version":"%s%s"`, 1), 200},
		{"revision", "initialize", `"result":` + strings.Replace(mcptest.Hello, "2025-11-25", "%s%s", 1), 40},
		{"error-of-a-call", "tools/call", `"error":{"code":1,"message":"%s%s"}`, 375},
		{"error-of-a-list", "tools/list", `"error":{"code":1,"message":"%s%s"}`, 365},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := ""
			dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q, headers: {X-Auth: "user:${file:token}@x"}}}
allowlist: allowlist.json
`, babbler(t, tt.method, &answer)), "allowlist.json", `{"echo": ["look"]}`, "token", hushed)
			for n := tt.cut - len(hushed) - 2; n <= tt.cut+2; n++ {
				answer = fmt.Sprintf(tt.answer, strings.Repeat("A", n), quoted)
				if piece := secretsShown(t, dir, "call", "echo", "look", "{}"); piece != "" {
					t.Fatalf("%d A and the token: %q is shown or recorded", n, piece)
				}
			}
		})
	}
	for _, tt := range []struct{ name, before, behind string }{
		{"model-as-it-is", "", hushed},
		{"model-escaped-in-no-json", `x {"a":"`, `\u005aq9\"x\\wV7-Kd3\/Jm5"}`},
		{"model-escaped-before-text", `{"error":{"message":"`, `\u005aq9\"x\\wV7-Kd3\/Jm5"}} x`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := ""
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, body)
			}))
			t.Cleanup(model.Close)
			dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: allowlist.json
input: {defaults: false}
planner: {mode: llm, llm: {base_url: %q, model: m, api_key: "pre.${file:token}"}}
`, mcptest.New(t, mcptest.Honest).URL, model.URL+"/v1"), "allowlist.json", `{"echo": ["look"]}`, "token", hushed)
			for n := 290; n < 350; n += 3 { // the status and the place go before it
				body = tt.before + strings.Repeat("A", n) + tt.behind
				if piece := secretsShown(t, dir, "run", "hello there"); piece != "" {
					t.Fatalf("%d A and the token: %q is shown or recorded", n, piece)
				}
			}
		})
	}
}
