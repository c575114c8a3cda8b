package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// answersConfig is a gateway before servers whose tools declare an outputSchema. The third server reads its memory from a pipe that
// nobody writes to.
const answersConfig = `version: 1
allowlist: allowlist.json
policy: policy.yaml
ledger: sqlite:pgfsm.db
limits: {result_bytes: 16384}
servers:
  filesystem: %s
  memory: %s
  slow: %s
`

const answersPolicy = `version: 1
policies:
  - {id: never, match: {server: filesystem, tool: read_multiple_files}, effect: deny, reason: "Not several at once."}
  - {id: never-either, match: {server: memory, tool: open_nodes}, effect: deny, reason: "Not several at once."}
  - {id: people, match: {server: filesystem, tool: get_file_info}, effect: pending, reason: "People decide.", expires: 1h}
  - {id: people-too, match: {server: memory, tool: search_nodes}, effect: pending, reason: "People decide.", expires: 1h}
  - {id: rest, match: {}, effect: allow}
`

// Openings of the text of an answer of the gateway's own.
const (
	sentNothing = "The call was not sent: "
	mayHave     = "The call may have happened: check before repeating. "
	withheld    = "The call was made; the result is withheld. "
)

// An answerCase is a call, and what its client must be able to read.
type answerCase struct{ name, tool, args, text, code string }

// answerCases are the calls of every client. ROOT stands for the folder of the filesystem server and ME for the
// client; what has the word approved in its arguments is approved.
var answerCases = []answerCase{
	{"files-refused", "filesystem__read_multiple_files", `{"paths": ["ROOT/a.txt"]}`, sentNothing, "policy_denied"},
	{"files-held", "filesystem__get_file_info", `{"path": "ROOT/ME.txt"}`, sentNothing, "approval_required"},
	{"files-approved", "filesystem__get_file_info", `{"path": "ROOT/approved-ME.txt"}`, "isFile: true", ""},
	{"files-timed-out", "filesystem__read_text_file", `{"path": "ROOT/pipe"}`, mayHave, "server_timeout"},
	{"files-too-large", "filesystem__read_text_file", `{"path": "ROOT/large.txt"}`, withheld, "result_too_large"},
	{"files-arguments-invalid", "filesystem__read_text_file", `{"path": "ROOT/a.txt", "more": 1}`, sentNothing, "arguments_invalid"},
	{"files-null", "filesystem__read_text_file", `{"path": "ROOT/a.txt", "head": null}`, "leave it out", "arguments_invalid"},
	{"memory-refused", "memory__open_nodes", `{"names": ["Ada"]}`, sentNothing, "policy_denied"},
	{"memory-held", "memory__search_nodes", `{"query": "ME"}`, sentNothing, "approval_required"},
	{"memory-approved", "memory__search_nodes", `{"query": "approved-ME"}`, `"entities"`, ""},
	{"memory-timed-out", "slow__read_graph", `{}`, mayHave, "server_timeout"},
	{"memory-too-large", "memory__read_graph", `{}`, withheld, "result_too_large"},
	{"memory-arguments-invalid", "memory__search_nodes", `{"query": "ME", "more": 1}`, sentNothing, "arguments_invalid"},
}

// answerClients are clients and how they come to the gateway.
var answerClients = []struct {
	name, script, mode, path string
	bridge                   bool // through mcp-remote
}{
	{"sdk-v1-http", "sdk-v1", "http", "/mcp", false},
	{"sdk-v1-sse", "sdk-v1", "sse", "/sse", false},
	{"sdk-v1-mcp-remote", "sdk-v1", "stdio", "/mcp", true},
	{"sdk-v1-stdio", "sdk-v1", "stdio", "", false},
	{"sdk-v2-legacy", "sdk-v2", "legacy", "/mcp", false},
	{"sdk-v2-auto", "sdk-v2", "auto", "/mcp", false},
	{"langchain-http", "langchain", "http", "/mcp", false},
	{"langchain-sse", "langchain", "sse", "/sse", false},
}

// answersFolder is the folder of a gateway for one or all of the clients.
func (in interop) answersFolder(t *testing.T) (dir, root string) {
	t.Helper()
	root = cli.Folder(t, "a.txt", boiler, "large.txt", strings.Repeat("x", 20_000))
	names := []string{"inspector", "inspector-legacy"}
	for _, c := range answerClients {
		names = append(names, c.name)
	}
	for _, name := range names {
		for _, file := range []string{name, "approved-" + name} {
			cli.Write(t, filepath.Join(root, file+".txt"), boiler)
		}
	}
	kept := cli.Folder(t, "memory.jsonl", fmt.Sprintf(`{"type":"entity","name":"Ada","entityType":"person","observations":[%q]}`+"\n", strings.Repeat("x", 20_000)))
	pipe := filepath.Join(root, "pipe")
	check.NoError(t, syscall.Mkfifo(pipe, 0o600))
	const limit = ", timeout: 20s, sessions: session" // each read of the pipe blocks one of the four threads that a Node process reads files with
	config := fmt.Sprintf(answersConfig, in.stdio("filesystem", limit, root), in.stdio("memory", limit+memoryIn(kept)),
		in.stdio("memory", limit+fmt.Sprintf(", env: {MEMORY_FILE_PATH: %q}", pipe)))
	return cli.Folder(t, "pgfsm.yaml", config, "policy.yaml", answersPolicy, "allowlist.json",
		`{"filesystem": ["read_multiple_files", "get_file_info", "read_text_file"], "memory": ["open_nodes", "search_nodes", "read_graph"], "slow": ["read_graph"]}`), root
}

// approves approves each held call whose arguments contain "approved-", until the test ends.
func approves(t *testing.T, dir string) {
	t.Helper()
	config := filepath.Join(dir, "pgfsm.yaml")
	token := map[string]string{"PGFSM_TOKEN": makeToken(t, config, "approver", "bob")}
	ended, over := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(ended); <-over })
	done := make(map[string]bool)
	go func() {
		defer close(over)
		for {
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
			}
			for run, binding := range toApprove(t, filepath.Join(dir, "pgfsm.db")) {
				if r := command(t.Context(), token, "approvals", "approve", "-c", config, run, "--digest", binding); !done[run] && r.Code != exitYes {
					t.Errorf("approve %s: %s%s", run, r.Stdout, r.Stderr)
				}
				done[run] = true
			}
		}
	}()
}

// toApprove are the bindings of the calls that wait and are to be approved, by run.
func toApprove(t *testing.T, path string) map[string]string {
	store, err := sqlite.OpenReadOnly(path)
	if err != nil {
		return nil // it has not begun
	}
	defer store.Close()
	all := make(map[string]string)
	err = store.View(t.Context(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			if q.Status == ledger.Pending && strings.Contains(q.Args, "approved-") {
				all[q.RunID] = string(q.Binding)
			}
		}
		return nil
	})
	if err != nil && t.Context().Err() == nil {
		t.Error(err)
	}
	return all
}

// TestGatewayAnswersReachClients: clients that validate results against the tool's outputSchema can read every answer of the gateway's
// own, over every transport: what is known of the call, why, and under which code. What people approve they can repeat.
func TestGatewayAnswersReachClients(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	dir, root := in.answersFolder(t)
	g := serve(t, dir)
	approves(t, dir)
	for _, c := range answerClients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			order, root := clientOrder{URL: g.base + c.path, Together: true}, root
			switch {
			case c.bridge:
				order.Command = []string{in.node, filepath.Join(in.modules, "mcp-remote", "dist", "proxy.js"), order.URL}
			case c.mode == "stdio": // a gateway of its own
				own, at := in.answersFolder(t)
				root = at
				order.Command = []string{program(t, "pgfsm"), "serve", "--stdio", "-c", filepath.Join(own, "pgfsm.yaml")}
				approves(t, own)
			}
			cases := slices.Clone(answerCases)
			if c.script == "langchain" { // it refuses a null by itself
				cases = slices.DeleteFunc(cases, func(tc answerCase) bool { return tc.name == "files-null" })
			}
			for _, tc := range cases {
				call := clientCall{Name: tc.tool, Arguments: []byte(strings.NewReplacer("ROOT", root, "ME", c.name).Replace(tc.args))}
				if tc.code == "" {
					call.Until = tc.text
				}
				order.Calls = append(order.Calls, call)
			}
			answers := in.drive(t, c.script, c.mode, order).Answers
			if len(answers) != len(cases) {
				t.Fatalf("%d answers to %d calls", len(answers), len(cases))
			}
			for i, tc := range cases {
				readable(t, tc, answers[i], c.script == "langchain")
			}
		})
	}
	t.Run("inspector", func(t *testing.T) { t.Parallel(); in.inspectorReads(t, g.base+"/mcp", root) })
}

// readable holds what a client got to a text and, of an answer of the gateway's own, a code. LangChain throws what its tool reports as an
// error, so that a model sees it.
func readable(t *testing.T, tc answerCase, got clientAnswer, throws bool) {
	t.Helper()
	shown := got.Text
	if throws && tc.code != "" {
		shown, got = got.Fault, clientAnswer{Text: got.Fault, Code: tc.code, IsError: true}
	}
	last := shown[strings.LastIndex(shown, "\n")+1:]
	var decision struct{ Code string }
	switch {
	case got.Fault != "" || !strings.Contains(shown, tc.text) || got.Code != tc.code || got.IsError != (tc.code != ""):
		t.Errorf("%s: %+v, want the text %q and the code %q", tc.name, got, tc.text, tc.code)
	case tc.code != "" && (json.Unmarshal([]byte(last), &decision) != nil || decision.Code != tc.code):
		t.Errorf("%s: the text ends with %q, want one line of JSON with the code %q", tc.name, last, tc.code)
	}
}

// inspectorReads: the inspector shows refusals. A held call is a task to it. With a session it shows only that the structured content is
// missing, and the outcome when the call is repeated after the approval; without one it waits for the outcome.
func (in interop) inspectorReads(t *testing.T, url, root string) {
	const info, code, missing = "filesystem__get_file_info", "/result/_meta/io.pgfsm~1decision/code", "declares an output schema but returned no structured content"
	path := func(name string) string { return fmt.Sprintf(`{"path": %q}`, filepath.Join(root, name+".txt")) }
	for _, tc := range []struct{ name, era, tool, args, at, want, stderr string }{
		{"refused", "legacy", "filesystem__read_multiple_files", `{"paths": ["a"]}`, code, "policy_denied", "tool_is_error"},
		{"too-large", "auto", "memory__read_graph", `{}`, code, "result_too_large", "tool_is_error"},
		{"held-with-a-session", "legacy", info, path("approved-inspector-legacy"), "/result", "", missing},
		{"held-without-a-session", "auto", info, path("approved-inspector"), "/result/isError", "", ""},
		{"repeated-with-a-session", "legacy", info, path("approved-inspector-legacy"), "/result/isError", "", ""},
	} {
		got, err := in.inspect(t, url, tc.era, "--method", "tools/call", "--tool-name", tc.tool, "--tool-args-json", tc.args)
		for n := 0; n < 10 && tc.stderr == "" && strings.Contains(got.Stderr, missing); n++ { // it is not approved yet
			got, err = in.inspect(t, url, tc.era, "--method", "tools/call", "--tool-name", tc.tool, "--tool-args-json", tc.args)
		}
		if (err == nil) != (tc.stderr == "") || got.Member(tc.at) != tc.want || !strings.Contains(got.Stderr, tc.stderr) ||
			err == nil && !strings.Contains(got.Stdout, "isFile: true") {
			t.Errorf("%s: %v, want %s = %q\n%s%s", tc.name, err, tc.at, tc.want, got.Stdout, got.Stderr)
		}
	}
}
